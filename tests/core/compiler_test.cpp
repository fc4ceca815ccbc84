/// Constants reach memory as they were written. GCC 12.2 with AVX-512 fills the 32 bytes of std::vector<double>{1, 1,
/// 0, 0} with ones; -mmove-max=128 -mstore-max=128 (or -fno-tree-slp-vectorize) avoid it. Without such a flag any list
/// of numbers, in a test or in the library, may be wrong.

#include <cstdint>
#include <vector>

#include "tests/harness/catch.hpp"

namespace engram::compiler_test {
namespace {

// Not inlined: the values must pass through memory, where the comparison cannot see the list.
template <class T>
__attribute__((noinline)) std::vector<T> two_of_four() {
  return {1, 1, 0, 0};
}
template <class T>
__attribute__((noinline)) std::vector<T> three_of_four() {
  return {2, 2, 2, 0};
}
template <class T>
__attribute__((noinline)) std::vector<T> two_of_eight() {
  return {1, 1, 0, 0, 0, 0, 0, 0};
}

template <class T>
bool is_step(const std::vector<T>& list, std::size_t high, T value) {
  for (std::size_t i = 0; i < list.size(); ++i)
    if (list[i] != (i < high ? value : T(0))) return false;
  return true;
}

TEMPLATE_TEST_CASE("compiler: lists of constants arrive unchanged", "[core]", double, float, std::int64_t,
                   std::int32_t) {
  INFO("this compiler breaks lists of constants with these options: see the comment of this file");
  CHECK(is_step<TestType>(two_of_four<TestType>(), 2, 1));
  CHECK(is_step<TestType>(three_of_four<TestType>(), 3, 2));
  CHECK(is_step<TestType>(two_of_eight<TestType>(), 2, 1));
}

}  // namespace
}  // namespace engram::compiler_test
