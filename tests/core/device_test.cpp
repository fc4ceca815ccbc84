#include "core/device.hpp"

#include "core/allocator.hpp"
#include "core/backend.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/sanitizers.hpp"

namespace engram::device_test {
namespace {

TEST_CASE("devices: names that are understood", "[core]") {
  CHECK(parse_device("cpu") == Device{DeviceKind::cpu, 0});
  CHECK(parse_device("cuda") == Device{DeviceKind::cuda, 0});
  CHECK(parse_device("cuda:0") == Device{DeviceKind::cuda, 0});
  CHECK(parse_device("cuda:12") == Device{DeviceKind::cuda, 12});
  CHECK(parse_device("simulated") == Device{DeviceKind::simulated, 0});
  CHECK(text(parse_device("cuda:3")) == "cuda:3");
  CHECK(text(parse_device("cpu")) == "cpu");
}

TEST_CASE("devices: names that are refused", "[core]") {
  for (const char* name : {"", "gpu", "CPU", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda: 1", "cuda:99999999999",
                           "cpu:0", "simulated:0", ":1", "cuda:1:2"}) {
    INFO("'" << name << "'");
    CHECK_THROWS_AS(parse_device(name), UsageError);
  }
  CHECK_THROWS_WITH(parse_device("gpu"), "device: must be cpu, cuda, cuda:N or simulated, got 'gpu'");
}

TEST_CASE("backends: the CPU is always there, once", "[core]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  CHECK(backend->device() == Device{DeviceKind::cpu, 0});
  CHECK_THROWS_AS(open_backend({DeviceKind::cpu, 1}), DeviceError);
}

TEST_CASE("backends: memory is aligned, copies copy, a replay runs again", "[core]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  void* data = backend->reserve(0);
  CHECK(data != nullptr);
  CHECK(reinterpret_cast<std::uintptr_t>(data) % Allocator::kAlignment == 0);
  backend->release(data);

  int* number = static_cast<int*>(backend->reserve(sizeof(int)));
  const int seven = 7;
  backend->copy(number, &seven, sizeof(int), CopyKind::host_to_device);
  int back = 0;
  backend->copy(&back, number, sizeof(int), CopyKind::device_to_host);
  CHECK(back == 7);
  backend->release(number);

  int runs = 0;
  const std::unique_ptr<Replay> replay = backend->capture([&runs] { ++runs; });
  CHECK(runs == 1);
  replay->run();
  replay->run();
  CHECK(runs == 3);
}

TEST_CASE("backends: a large block begins at a huge page", "[core]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  for (const std::size_t bytes : {std::size_t{32} << 20, (std::size_t{32} << 20) + 12345}) {
    void* const data = backend->reserve(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(data) % (std::size_t{2} << 20) == 0);
    backend->release(data);
  }
}

TEST_CASE("backends: too much memory is an error with the number", "[core]") {
  // They end the program at a request of this size.
  if (harness::address_sanitizer_watches() || harness::thread_sanitizer_watches()) return;
  const std::unique_ptr<Backend> backend = open_backend({});
  CHECK_THROWS_AS(backend->reserve(std::size_t{1} << 60), DeviceError);
  CHECK_THROWS_WITH(backend->reserve(std::size_t{1} << 60), ContainsSubstring("1152921504606846976 bytes"));
}

}  // namespace
}  // namespace engram::device_test
