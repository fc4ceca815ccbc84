#include "cuda/simulated/block.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "core/error.hpp"
#include "cuda/simulated/cost/access_counter.hpp"
#include "cuda/simulated/deadlock_report.hpp"
#include "cuda/simulated/run_order.hpp"

namespace engram::simulated {

constinit thread_local const Place* current_place = nullptr;

namespace {

Thread& current_thread() { return *const_cast<Thread*>(static_cast<const Thread*>(current_place)); }

Index3 index_in(const Index3& sizes, std::int64_t number) {
  return {static_cast<unsigned>(number % sizes.x), static_cast<unsigned>(number / sizes.x % sizes.y),
          static_cast<unsigned>(number / sizes.x / sizes.y)};
}

std::string index_text(const Index3& index) { return text("(", index.x, ", ", index.y, ", ", index.z, ")"); }

}  // namespace

Block::~Block() {
#if defined(ENGRAM_SIMULATED_ASAN)
  // A fiber's fake stack can be freed by the fiber alone.
  launch_ = nullptr;
  caller_.adopt_caller();
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    threads_[i].fiber.prepare(stacks_.at(i), &Block::entry, i);
    current_place = &threads_[i];
    Fiber::switch_to(caller_, threads_[i].fiber);
  }
  current_place = nullptr;
#endif
}

void Block::begin(std::int64_t block, const RunOptions& options) {
  count_ = launch_->thread_count();
  const auto count = static_cast<std::size_t>(count_);
  while (threads_.size() < count) threads_.emplace_back();
  const std::size_t warps = (count + kWarpSize - 1) / kWarpSize;
  while (warps_.size() < warps) warps_.emplace_back();
  for (std::size_t w = 0; w < warps; ++w) {
    const std::size_t lanes = std::min<std::size_t>(kWarpSize, count - w * kWarpSize);
    warps_[w].begin_block(~std::uint32_t{0} >> (kWarpSize - lanes));
  }
  const std::size_t groups = (count + Warpgroup::kThreads - 1) / Warpgroup::kThreads;
  while (warpgroups_.size() < groups) warpgroups_.emplace_back();
  for (std::size_t g = 0; g < groups; ++g) warpgroups_[g].begin_block();
  make_order(options, static_cast<std::uint64_t>(block) + 1, count_, order_);
  lane_order_.resize(count);
  std::vector<std::size_t> filled(warps);
  for (const std::int64_t number : order_) {
    const auto warp = static_cast<std::size_t>(number) / kWarpSize;
    lane_order_[warp * kWarpSize + filled[warp]++] = number;
  }
  ready_.resize(count);
  ready_begin_ = ready_count_ = 0;
  exited_ = at_barrier_ = 0;
  failed_ = false;
  failure_.clear();
  shared_.begin_block(launch_->shared_bytes);
  operands_.begin_block(shared_, count);
  copies_.begin_block(shared_, count);
  const Index3 place = index_in(launch_->blocks, block);
  for (std::size_t i = 0; i < count; ++i) {
    Thread& thread = threads_[i];
    thread.number = static_cast<int>(i);
    static_cast<Place&>(thread) = {index_in(launch_->threads, thread.number), place, launch_->threads, launch_->blocks};
    thread.owner = this;
    thread.fiber.prepare(stacks_.at(i), &Block::entry, i);
  }
  for (const std::int64_t number : order_) make_ready(threads_[static_cast<std::size_t>(number)]);
}

std::string Block::run(const LaunchRecord& launch, std::int64_t block, const RunOptions& options, HappensBefore& begun,
                       HappensBefore& ended) {
  launch_ = &launch;
  begun_ = &begun;
  ended_ = &ended;
  begun.acquire();
  begin(block, options);
  AccessCounter::active() = counter_;
  if (counter_ != nullptr) counter_->begin_block(count_, shared_);
  block_begun_.release();
  caller_.adopt_caller();
  // Threads continue each other; this one is back when none can run.
  while (!failed_ && ready_count_ > 0) {
    Thread* thread = next_ready();
    current_place = thread;
    Fiber::switch_to(caller_, thread->fiber);
  }
  current_place = nullptr;
  AccessCounter::active() = nullptr;
  if (counter_ != nullptr) counter_->end_block();
  block_ended_.acquire();
  if (!failed_ && exited_ < count_)
    failure_ = text("launch: ", deadlock_report(threads_, count_));
  else if (!failed_ && !shared_.guard_intact())
    failure_ = text("launch: a kernel must stay inside its dynamic shared memory, got a write behind the ",
                    launch.shared_bytes, " bytes that the launch asked for");
  if (failure_.empty()) return {};
  if (!failed_) failure_ += text("\n  in block ", index_text(index_in(launch.blocks, block)));
  for (int i = 0; i < count_; ++i) {
    Thread& thread = threads_[static_cast<std::size_t>(i)];
    if (thread.state != Thread::State::exited) thread.fiber.abandon(block_ended_);
  }
  block_ended_.acquire();
  ended.release();
  return failure_ + text("; the kernel was started at ", launch.file, ":", launch.line);
}

void Block::entry() {
  Thread& self = current_thread();
  Block& block = *self.owner;
  self.fiber.entered(block.caller_);
  if (block.launch_ == nullptr) Fiber::leave_for_good(self.fiber, block.caller_);
  block.begun_->acquire();
  block.block_begun_.acquire();
  block.fail_unless_empty(self, block.run_kernel());
  block.ended_->release();
  block.block_ended_.release();
  block.exit(self);
}

std::string Block::run_kernel() const {
  try {  // The handlers end here: a fiber that is left inside of one would confuse the next exception of its OS thread.
    launch_->kernel(launch_->arguments);
    return {};
  } catch (const std::exception& error) {
    return text("a kernel must not throw, got an exception: ", error.what());
  } catch (...) {
    return "a kernel must not throw, got an exception";
  }
}

void Block::exit(Thread& self) {
  self.state = Thread::State::exited;
  ++exited_;
  fail_unless_empty(self, warp_of(self).exit(self.lane()));
  fail_unless_empty(self, copies_.exit(static_cast<std::size_t>(self.number)));
  if (at_barrier_ > 0 && at_barrier_ + exited_ == count_) open_barrier();
  suspend(self);
  std::abort();  // nobody continues a thread that has exited
}

void Block::make_ready(Thread& thread) {
  thread.state = Thread::State::ready;
  std::size_t end = ready_begin_ + ready_count_++;
  if (end >= ready_.size()) end -= ready_.size();
  ready_[end] = thread.number;
}

Thread* Block::next_ready() {
  if (ready_count_ == 0) return nullptr;
  Thread& thread = threads_[static_cast<std::size_t>(ready_[ready_begin_])];
  if (++ready_begin_ == ready_.size()) ready_begin_ = 0;
  --ready_count_;
  return &thread;
}

void Block::suspend(Thread& self) {
  Thread* next = next_ready();
  if (next == &self) return;
  current_place = next;
  Fiber::switch_to(self.fiber, next != nullptr ? next->fiber : caller_);
}

void Block::fail(const Thread& self, std::string&& mistake) {
  failed_ = true;
  failure_ = text("launch: ", mistake, "\n  by thread ", index_text(self.thread), " of block ", index_text(self.block));
  std::string().swap(mistake);  // an assignment would keep its memory
  block_ended_.release();
  Fiber::switch_to(const_cast<Thread&>(self).fiber, caller_);
  std::abort();  // run() does not continue after a failure
}

void Block::open_barrier() {
  ++barriers_;
  at_barrier_ = 0;
  if (counter_ != nullptr) counter_->barrier();
  operands_.barrier();
  for (const std::int64_t number : order_)
    if (Thread& thread = threads_[static_cast<std::size_t>(number)]; thread.state == Thread::State::at_barrier)
      make_ready(thread);
}

std::string Block::barrier_mistake(const Thread& self, const Site& site) const {
  if (at_barrier_ == 0 || first_at_barrier_->site == site) return {};
  return text("all threads of a block must wait at one barrier, got thread ", self.number, " at ", site.text(),
              " and thread ", first_at_barrier_->number, " at ", first_at_barrier_->site.text());
}

void Block::barrier(Thread& self, const Site& site) {
  fail_unless_empty(self, barrier_mistake(self, site));
  if (at_barrier_ == 0) first_at_barrier_ = &self;
  self.state = Thread::State::at_barrier;
  self.site = site;
  ++at_barrier_;
  HappensBefore& order = barrier_orders_[barriers_ % 2];
  order.release();
  if (at_barrier_ + exited_ == count_) open_barrier();
  suspend(self);
  order.acquire();
}

Meeting& Block::meet(Thread& self, const Site& site, std::uint32_t mask, std::uint64_t value, Memory memory) {
  Warp& warp = warp_of(self);
  fail_unless_empty(self, warp.mistake(self.lane(), site, mask));
  Meeting& meeting = warp.arrive(self.lane(), site, mask, value);
  self.state = Thread::State::at_collective;
  self.site = site;
  self.mask = mask;
  self.meeting = &meeting;
  if (memory == Memory::ordered) meeting.order->release();
  if (meeting.complete()) {
    if (counter_ != nullptr) counter_->met(self.number / kWarpSize, warp.runs_only(mask));
    const auto first = static_cast<std::size_t>(self.number / kWarpSize) * kWarpSize;
    const std::size_t last = std::min(first + kWarpSize, static_cast<std::size_t>(count_));
    for (std::size_t i = first; i < last; ++i) {
      Thread& thread = threads_[static_cast<std::size_t>(lane_order_[i])];
      if (mask >> thread.lane() & 1u) make_ready(thread);
    }
  }
  suspend(self);
  if (memory == Memory::ordered) meeting.order->acquire();
  return meeting;
}

void Block::multiply(Thread& self, const Site& site, const WarpgroupProduct& product) {
  const int number = self.number / Warpgroup::kThreads;
  // A function of its own frees what the words are made of: fail() does not return.
  const auto mistake = [&] {
    return text("a warpgroup must have ", Warpgroup::kThreads, " threads, got a block of ", count_, " at ",
                site.text());
  };
  if (count_ < (number + 1) * Warpgroup::kThreads) fail(self, mistake());
  Warpgroup& group = warpgroups_[static_cast<std::size_t>(number)];
  fail_unless_empty(self, group.arrive(self.number % Warpgroup::kThreads, site, product));
  self.state = Thread::State::at_warpgroup;
  self.site = site;
  if (group.complete()) {
    fail_unless_empty(self, group.multiply(operands_, site));
    ++warpgroup_products_;
    if (counter_ != nullptr) counter_->multiplied(number, product.columns, product.steps);
    for (const std::int64_t other : order_)
      if (other / Warpgroup::kThreads == number) make_ready(threads_[static_cast<std::size_t>(other)]);
  }
  suspend(self);
}

void Block::operand_written(Thread& self, const Site& site, const void* data, std::size_t bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(shared_.data());
  fail_unless_empty(self, operands_.write(static_cast<std::size_t>(self.number), at, bytes, site));
}

void Block::begin_copy(Thread& self, const AsyncCopies::Copy& copy) {
  if (copy.from != nullptr) tell_read(copy.from, AsyncCopies::kBytes);
  tell_write(copy.to, AsyncCopies::kBytes);
  fail_unless_empty(self, copies_.begin(static_cast<std::size_t>(self.number), copy));
  if (copy.operand) operand_written(self, copy.site, copy.to, AsyncCopies::kBytes);
}

void Block::finish_copies(Thread& self) {
  std::vector<AsyncCopies::Copy>& copies = copies_.of(static_cast<std::size_t>(self.number));
  for (const AsyncCopies::Copy& copy : copies) {
    fail_unless_empty(self, copies_.finish(copy));
    if (copy.from != nullptr) tell_read(copy.from, AsyncCopies::kBytes);
    tell_write(copy.to, AsyncCopies::kBytes);
    if (copy.from != nullptr)
      std::memcpy(copy.to, copy.from, AsyncCopies::kBytes);
    else
      std::memset(copy.to, 0, AsyncCopies::kBytes);
    if (copy.operand) operand_written(self, copy.site, copy.to, AsyncCopies::kBytes);  // again: no fence before counts
  }
  copies.clear();
}

}  // namespace engram::simulated
