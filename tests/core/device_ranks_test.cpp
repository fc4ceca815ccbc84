#include "core/device_ranks.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::device_ranks_test {
namespace {

/// A device that calls itself cuda, in a program that has no library for it.
class Named final : public Backend {
 public:
  explicit Named(bool shares) : shares_(shares) {}
  bool waited = false;

  Device device() const override { return {DeviceKind::cuda, 3}; }
  void* reserve(std::size_t) override { return nullptr; }
  void release(void*) noexcept override {}
  void copy(void*, const void*, std::size_t, CopyKind) override {}
  void synchronize() override { waited = true; }
  std::unique_ptr<Replay> capture(std::function<void()> step) override { return capture_by_calling(std::move(step)); }
  bool works_behind() const override { return true; }
  bool shares_host_memory() const override { return shares_; }

 private:
  bool shares_;
};

TEST_CASE("device ranks: the host's serve what shares its memory; else there must be a library", "[ranks]") {
  Named shared(true), own(false);
  OneRank one;
  CHECK(open_device_ranks(one, own) == nullptr);
  std::vector<std::string> messages(2);
  run_ranks(2, [&](Communicator& ranks) {
    if (open_device_ranks(ranks, shared) != nullptr) throw Error("the host's ranks must serve");
    try {
      (void)open_device_ranks(ranks, own);
    } catch (const NotAvailable& error) {
      messages[static_cast<std::size_t>(ranks.rank())] = error.what();
    }
  });
  for (const std::string& message : messages)
    CHECK_THAT(message, ContainsSubstring("ranks: device cuda:3 must have a library") &&
                            ContainsSubstring("got 2 ranks") && ContainsSubstring("libnccl-dev"));
}

TEST_CASE("ranks: what carries memory of the host waits for a device that works behind it", "[ranks]") {
  Named device(true);
  OneRank one;
  bool called_after_waiting = false;
  one.in_step(device, [&] { called_after_waiting = device.waited; });
  CHECK(called_after_waiting);
}

}  // namespace
}  // namespace engram::harness::device_ranks_test
