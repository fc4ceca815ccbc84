/// Products whose operands are copied first because their rows collide (cpu/colliding_rows.hpp), against the same
/// products in double precision, which are never copied.

#include "tests/ops/product_runs.hpp"

namespace engram::harness::colliding_rows_test {
namespace {

TEST_CASE("matmul: operands with colliding rows", "[gemm]") {
  constexpr Transpose no = Transpose::no, yes = Transpose::yes;
  const ProductSizes sizes = GENERATE(ProductSizes{40, 512, 70, no, no}, ProductSizes{512, 40, 70, yes, no},
                                      ProductSizes{512, 1024, 33, yes, no}, ProductSizes{512, 35, 70, yes, yes},
                                      // Several pieces of the inner size; too few rows to copy for.
                                      ProductSizes{33, 512, 2111, no, no}, ProductSizes{31, 512, 70, no, no},
                                      // Rows longer than a copy's: panels of b, of a, and of both.
                                      ProductSizes{32, 4352, 300, no, no}, ProductSizes{4352, 32, 300, yes, no},
                                      ProductSizes{4352, 4352, 3, yes, no});
  CAPTURE(sizes.m, sizes.n, sizes.k);
  for (const Write write : {Write::set, Write::add}) {
    ProductRun<float> single;
    ProductRun<double> twice;
    CHECK(worst_difference(product(single, sizes, write), product(twice, sizes, write)) == 0);
  }
}

TEST_CASE("project_past: cached states with colliding rows", "[gemm]") {
  // Windows longer than the cache, than one copy, and empty ones.
  const HeadWindows windows({1300, 0, 700, 512, 3});
  const std::int64_t cached = GENERATE(0, 2, 1100);
  for (const Write write : {Write::set, Write::add}) {
    ProductRun<float> single;
    ProductRun<double> twice;
    CHECK(worst_difference(past_gradient(single, 2, cached, 768, windows, write),
                           past_gradient(twice, 2, cached, 768, windows, write)) == 0);
  }
}

}  // namespace
}  // namespace engram::harness::colliding_rows_test
