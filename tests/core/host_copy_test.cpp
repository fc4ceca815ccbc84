#include "core/host_copy.hpp"

#include <cstdint>
#include <memory>
#include <vector>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/guarded_allocator.hpp"

namespace engram::host_copy_test {
namespace {

TEST_CASE("host copy: elements in their own type and as doubles", "[core]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  harness::GuardedAllocator allocator(*backend);
  const auto filled = [&]<class T>(DType dtype, const std::vector<T>& values) {
    const Tensor tensor({static_cast<std::int64_t>(values.size())}, dtype, {}, allocator);
    backend->copy(tensor.raw(), values.data(), tensor.bytes(), CopyKind::host_to_device);
    return tensor;
  };
  const Tensor ids = filled(DType::i64, std::vector<std::int64_t>{3, -7});
  CHECK(host_copy<std::int64_t>(*backend, ids) == std::vector<std::int64_t>{3, -7});
  CHECK_THROWS_AS(host_doubles(*backend, ids), DTypeError);
  CHECK_THROWS_AS(host_copy<float>(*backend, ids), DTypeError);
  CHECK(host_doubles(*backend, filled(DType::f32, std::vector<float>{0.5f, 0.1f})) ==
        std::vector<double>{0.5, static_cast<double>(0.1f)});
  CHECK(host_doubles(*backend, filled(DType::f64, std::vector<double>{0.1, -2})) == std::vector<double>{0.1, -2});
  CHECK(host_doubles(*backend, filled(DType::bf16, std::vector<bf16>{bf16(1.5f), bf16(-3.0f)})) ==
        std::vector<double>{1.5, -3});
  CHECK(host_doubles(*backend, filled(DType::f32, std::vector<float>{})).empty());
  CHECK(host_copy<float>(*backend, {}).empty());
  CHECK(host_doubles(*backend, {}).empty());
}

}  // namespace
}  // namespace engram::host_copy_test
