/// Gradients leave while the backward pass still runs, and not before nothing is added to them: step by step, and
/// between the parts of a captured one.

#include "apps/run/training/bucket_sender.hpp"

#include <string>
#include <utility>
#include <vector>

#include "apps/run/training/step_replay.hpp"
#include "autograd/functions.hpp"
#include "core/arena.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/harness/thread_ranks.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::bucket_sender_test {
namespace {

/// Sees what all gradients are whenever a bucket leaves.
class Watched final : public Communicator {
 public:
  Watched(Communicator& ranks, const Tensor& gradients) : ranks_(&ranks), gradients_(gradients) {}

  struct Left {
    std::size_t begin = 0, end = 0;  ///< of the bucket, in bytes of the gradients
    std::string all;                 ///< the gradients then
  };
  std::vector<Left> left;

  int rank() const override { return ranks_->rank(); }
  int size() const override { return ranks_->size(); }
  std::string place(int rank) const override { return ranks_->place(rank); }
  std::unique_ptr<Transfer> start_exchange(const void* send, PartEnds send_ends, void* receive,
                                           PartEnds receive_ends) override {
    const auto* const all = static_cast<const char*>(gradients_.raw());
    const auto begin = static_cast<std::size_t>(static_cast<const char*>(send) - all);
    left.push_back({begin, begin + send_ends.back(), {all, gradients_.bytes()}});
    return ranks_->start_exchange(send, send_ends, receive, receive_ends);
  }
  std::unique_ptr<Transfer> start_gather(void* all, PartEnds ends) override { return ranks_->start_gather(all, ends); }
  void gather_host(const void* own, std::size_t bytes, void* all) override { ranks_->gather_host(own, bytes, all); }
  void collect_host(void* all, PartEnds ends) override { ranks_->collect_host(all, ends); }
  bool all_end_with(std::string_view, double) override { return false; }
  [[noreturn]] void abort(int) override { throw Error("no test ends all ranks"); }

 private:
  Communicator* ranks_;
  Tensor gradients_;
};

std::string bucket_of(const Watched::Left& at, const Watched::Left& bucket) {
  return at.all.substr(bucket.begin, bucket.end - bucket.begin);
}

constexpr int kLayers = 3;
constexpr std::int64_t kWidth = 70;  // so that a layer has more than one chunk

/// A chain of maps, a bucket for each.
struct Chain {
  std::unique_ptr<Backend> backend;
  HeapAllocator heap{*backend};
  Arena arena{heap};
  Step step{*backend, arena, 7};
  ParameterStore store;
  std::vector<std::unique_ptr<Parameter>> weights;
  Tensor x, cotangent;

  Chain(Device device, int rank) : backend(open_backend(device)) {
    backend->set_threads(1);
    for (int i = 0; i < kLayers; ++i) {
      weights.push_back(
          std::make_unique<Parameter>(Shape{kWidth, kWidth}, Initializer{Initializer::Kind::normal, 0.1}));
      store.add(text("layers.", i, ".weight"), *weights.back());
    }
    store.place(*backend, DType::f32, 5);
    x = numbers(2 * static_cast<std::uint64_t>(rank) + 1);
    cotangent = numbers(2 * static_cast<std::uint64_t>(rank) + 2);
  }
  Tensor numbers(std::uint64_t seed) {
    reference::RandomArrays random(seed);
    const reference::Array64 values = random.array({2, kWidth});
    const std::vector<float> host(values.data.begin(), values.data.end());
    Tensor tensor({2, kWidth}, DType::f32, backend->device(), heap);
    backend->copy(tensor.raw(), host.data(), tensor.bytes(), CopyKind::host_to_device);
    return tensor;
  }
  void backward(BucketSender& sender) {
    store.zero_dense_gradients(step);
    sender.begin(step);
    Tape tape(step);
    tape.watch_backward(&sender);
    Variable y = tape.constant(x);
    for (const auto& weight : weights) y = linear(y, tape.parameter(*weight));
    const Variable last = y;
    y = {};
    tape.backward(last, cotangent);
    sender.finish();
  }
};

/// What left in each of some steps, of which the last are replayed where the device can.
std::vector<std::vector<Watched::Left>> watch(Device device, Communicator& ranks) {
  Chain chain(device, ranks.rank());
  const Tensor gradients = chain.store.groups().front().gradients;
  Watched watched(ranks, gradients);
  PieceSums sums({gradients}, 1, chain.heap);
  const std::vector<Bucket> buckets = make_buckets(chain.store, ranks.size(), 1);
  BucketSender sender(chain.store, buckets, sums, watched);
  StepReplay replay(*chain.backend);
  std::vector<std::vector<Watched::Left>> steps;
  for (int i = 0; i < 5; ++i) {
    const auto step = [&] { chain.backward(sender); };
    sums.begin();
    chain.step.begin({});
    if (chain.backend->works_behind())
      replay.run({}, step);
    else
      step();
    chain.arena.end_step();
    steps.push_back(std::exchange(watched.left, {}));
  }
  if (replay.replayed() != (chain.backend->works_behind() ? 2 : 0))
    throw Error(text("two steps must be replayed where they can be, got ", replay.replayed()));
  return steps;
}

TEST_CASE("ranks: buckets leave during the backward pass as soon as they are final, in captured steps too", "[ranks]") {
  std::vector<Device> devices = other_devices();
  devices.emplace_back();
  for (const Device device : devices) {
    if (device.kind == DeviceKind::cuda) continue;  // its memory cannot be looked at
    CAPTURE(text(device));
    std::vector<std::vector<Watched::Left>> first;
    run_ranks(2, [&](Communicator& ranks) {
      auto steps = watch(device, ranks);
      if (ranks.leads()) first = std::move(steps);
    });
    REQUIRE(first.size() == 5);
    for (std::size_t i = 0; i < first.size(); ++i) {
      CAPTURE(i);
      const std::vector<Watched::Left>& left = first[i];
      REQUIRE(left.size() == kLayers);
      for (const Watched::Left& bucket : left) {
        CHECK(bucket_of(bucket, bucket) == bucket_of(left.back(), bucket));  // nothing was added to it afterwards
        CHECK(bucket_of(bucket, bucket) == bucket_of(first[0].back(), bucket));
      }
      // At the first step nobody knows the order yet; then the last layer leaves when the first has no gradient yet.
      const bool early = bucket_of(left.front(), left.back()) != bucket_of(left.back(), left.back());
      CHECK(early == (i > 0));
    }
  }
}

}  // namespace
}  // namespace engram::harness::bucket_sender_test
