#include "cuda/simulated/engine.hpp"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "cuda/simulated/run_order.hpp"

namespace engram::simulated {
namespace {

/// The mistake of the earliest block that made one.
class FirstFailure {
 public:
  void add(std::int64_t position, std::string report) {
    const std::lock_guard lock(mutex_);
    if (position >= position_.load()) return;
    position_.store(position);
    report_ = std::move(report);
  }
  bool before(std::int64_t position) const { return position_.load() < position; }
  const std::string& report() const { return report_; }

 private:
  std::mutex mutex_;
  std::atomic<std::int64_t> position_{INT64_MAX};
  std::string report_;
};

int worker_count(std::int64_t blocks) {
  // Every worker keeps the stacks of its largest block, two mappings per thread: more than 16 times 1024 of them would
  // come near the number that Linux allows a process.
  constexpr int kMostWorkers = 16;
#if defined(ENGRAM_SIMULATED_TSAN)
  // Blocks on different OS threads are not ordered, so races between neighbours show even where there is one core.
  const int available = std::max(2, omp_get_max_threads());
#else
  if (omp_in_parallel()) return 1;
  const int available = omp_get_max_threads();
#endif
  return static_cast<int>(std::clamp<std::int64_t>(blocks, 1, std::min(available, kMostWorkers)));
}

}  // namespace

void Engine::start(std::function<void()> work, std::span<const std::byte> arguments) {
  ++started_;
  if (capturing_)
    captured_.push_back({std::move(work), {reservations, arguments}});
  else
    work();
}

void Engine::start_uncounted(std::function<void()> action) {
  if (capturing_)
    captured_.push_back({std::move(action), {reservations, {}}});
  else
    action();
}

std::int64_t Engine::warpgroup_products() const {
  std::int64_t sum = 0;
  for (const auto& worker : workers_) sum += worker->warpgroup_products();
  return sum;
}

void Engine::begin_capture() {
  captured_.clear();
  capturing_ = true;
}

std::vector<CapturedWork> Engine::captured() {
  capturing_ = false;
  return std::exchange(captured_, {});
}

void Engine::make_workers(int count) {
  while (workers_.size() < static_cast<std::size_t>(count)) workers_.push_back(std::make_unique<Block>());
}

void Engine::run_sample(const LaunchRecord& launch) {
  const LaunchMemory memory(launch, reservations);
  if (costs.add_again(launch, memory)) return;
  std::vector<SampledBlock> sample = choose_blocks(launch.block_count(), costs.sampling().blocks);
  const auto count = static_cast<std::int64_t>(sample.size());
  const int workers = worker_count(count);
  make_workers(workers);
  FirstFailure failure;
  begun_.release();
#pragma omp parallel for num_threads(workers) schedule(dynamic)
  for (std::int64_t i = 0; i < count; ++i) {
    SampledBlock& one = sample[static_cast<std::size_t>(i)];
    Block& block = *workers_[static_cast<std::size_t>(omp_get_thread_num())];
    AccessCounter counter;
    counter.begin_launch(launch);
    block.count_with(&counter);
    try {
      std::string report = block.run(launch, one.number, options, begun_, ended_);
      if (!report.empty()) failure.add(i, report);
    } catch (const Error& error) {
      failure.add(i, error.what());
    }
    block.count_with(nullptr);
    one.take(counter, memory);
  }
  ended_.acquire();
  if (!failure.report().empty()) throw DeviceError(failure.report());
  costs.add_sampled(launch, memory, sample);
}

void Engine::run(const LaunchRecord& launch) {
  if (costs.idle()) return;
  if (costs.samples() && !costs.sampling().whole) return run_sample(launch);
  const std::int64_t blocks = launch.block_count();
  const int workers = worker_count(blocks);
  make_workers(workers);
  std::vector<std::int64_t> order;
  make_order(options, 0, blocks, order);

  if (costs.wanted()) costs.begin(launch, workers);
  for (int worker = 0; worker < workers; ++worker)
    workers_[static_cast<std::size_t>(worker)]->count_with(costs.wanted() ? &costs.of_worker(worker) : nullptr);

  FirstFailure failure;
  const auto work = [&](int worker, int stride) {
    Block& block = *workers_[static_cast<std::size_t>(worker)];
    for (std::int64_t position = worker; position < blocks && !failure.before(position); position += stride) {
      try {
        std::string report = block.run(launch, order[static_cast<std::size_t>(position)], options, begun_, ended_);
        if (!report.empty()) failure.add(position, report);
      } catch (const Error& error) {
        failure.add(position, error.what());
      }
    }
  };
  begun_.release();
  if (workers == 1) {
    work(0, 1);
  } else {
#pragma omp parallel num_threads(workers)
    work(omp_get_thread_num(), omp_get_num_threads());
  }
  ended_.acquire();
  if (!failure.report().empty()) throw DeviceError(failure.report());
  if (costs.wanted()) costs.end(launch);
}

}  // namespace engram::simulated
