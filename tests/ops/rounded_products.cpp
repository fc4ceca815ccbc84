/// ProductPrecision::bf16: operands of f32 products are rounded to bf16, sums are not.

#include "cpu/rounded_gemm.hpp"

#include <array>

#include "tests/harness/array_difference.hpp"
#include "tests/ops/attention_kernels.hpp"
#include "tests/ops/product_runs.hpp"

namespace engram::harness::rounded_products_test {
namespace {

/// Multiples of 1/1024 below 1: most are no bf16 numbers, and sums of products of rounded ones are nearly exact in f32.
double fine(double x) { return std::round(1024 * x) / 1024; }
/// To 8 significant bits, ties to even.
double rounded(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(fine(x), &exponent);
  return std::ldexp(std::nearbyint(mantissa * 256), exponent - 8);
}

/// What sums in f32 may miss, and what forgotten roundings change at least.
constexpr double kExact = 1e-5, kRounding = 2e-4;

/// Sees f32 numbers that are not rounded, with products that round, against rounded ones in f64.
struct Runs {
  ProductRun<float> rounding{fine, ProductPrecision::bf16};
  ProductRun<float> plain{fine};
  ProductRun<double> wanted{rounded, ProductPrecision::bf16};
};

TEST_CASE("matmul in bf16: operands are rounded, sums are not", "[gemm]") {
  constexpr Transpose no = Transpose::no, yes = Transpose::yes;
  const ProductSizes sizes = GENERATE(
      ProductSizes{1, 1, 1, no, no}, ProductSizes{5, 3, 7, no, no}, ProductSizes{5, 3, 7, yes, no},
      ProductSizes{5, 3, 7, no, yes}, ProductSizes{5, 3, 7, yes, yes}, ProductSizes{130, 257, 67, no, no},
      ProductSizes{130, 257, 67, yes, no}, ProductSizes{130, 257, 67, no, yes}, ProductSizes{512, 100, 256, yes, yes},
      ProductSizes{33, 17, 9, no, yes, 3}, ProductSizes{9, 65, 40, yes, no, 11});
  CAPTURE(sizes.m, sizes.n, sizes.k, sizes.batch);
  Runs runs;
  const std::vector<double> wanted = product(runs.wanted, sizes, Write::set);
  CHECK(worst_difference(product(runs.rounding, sizes, Write::set), wanted) < kExact);
  if (sizes.m > 1) CHECK(worst_difference(product(runs.plain, sizes, Write::set), wanted) > kRounding);
}

TEST_CASE("matmul in bf16 adds to f32 numbers, and needs no inner size", "[gemm]") {
  // Results are added to; they are not rounded.
  const ProductSizes sizes{40, 30, 20, Transpose::no, Transpose::no};
  Runs runs;
  const std::vector<double> set = product(runs.rounding, sizes, Write::set);
  const Tensor before = runs.rounding.numbers({1, 40, 30}, 3);
  std::vector<double> wanted = set;
  for (std::size_t i = 0; i < wanted.size(); ++i) wanted[i] += static_cast<double>(before.data<float>()[i]);
  CHECK(worst_difference(product(runs.rounding, sizes, Write::add), wanted) < kExact);
  const ProductSizes empty{4, 3, 0, Transpose::no, Transpose::no};
  for (const double x : product(runs.rounding, empty, Write::set)) CHECK(x == 0);
}

TEST_CASE("project_past in bf16", "[gemm]") {
  const HeadWindows windows({13, 0, 70, 5});
  const std::int64_t cached = GENERATE(0, 2, 41), width = GENERATE(6, 512);
  Runs runs;
  CHECK(worst_difference(past_projection(runs.rounding, 2, cached, width, windows),
                         past_projection(runs.wanted, 2, cached, width, windows)) < kExact);
  CHECK(worst_difference(past_gradient(runs.rounding, 2, cached, width, windows, Write::set),
                         past_gradient(runs.wanted, 2, cached, width, windows, Write::set)) < kExact);
}

TEST_CASE("rows are rounded to the values of bf16 numbers", "[gemm]") {
  // A tie goes to the even number, up or down; the fourth is not read.
  const float from[] = {1.00390625f, -3.14159274f, 7, 1e-40f, 65504, 0.1f, -1.01171875f};
  float values[6];
  cpu::round_rows(from, 4, 2, 3, values, 3);
  const float wanted[] = {1, -3.140625f, 7, 65536, 0.10009765625f, -1.015625f};
  for (int i = 0; i < 6; ++i) CHECK(values[i] == wanted[i]);
}

TEST_CASE("memory for rounded operands serves a product whichever side is its inner one", "[gemm]") {
  ProductRun<float> run(fine, ProductPrecision::bf16);
  for (const std::int64_t m : {1, 16, 20, 33, 64})
    for (const std::int64_t n : {1, 8, 16, 32, 41, 48, 64})
      for (const std::int64_t k : {64, 79, 100, 127, 640}) {
        const cpu::RoundingMemory memory(run.step, m, n, k, 2);
        CAPTURE(m, n, k);
        for (const auto& [a, b, inner] : {std::array{m, n, k}, std::array{m, k, n}, std::array{k, n, m}}) {
          const auto packed = std::size_t(cpu::packed_size(a, inner) + cpu::packed_size(b, inner)) * sizeof(bf16);
          const cpu::RoundedOperands values(cpu::Gemm<float>{.m = a, .n = b, .k = inner});
          const auto plain = std::size_t(values.a_size() + values.b_size()) * sizeof(float);
          CHECK((cpu::multiplies_bf16() ? packed : plain) <= memory.bytes_of_thread());
        }
        CHECK(memory.bytes_of_thread() % 64 == 0);
      }
}

TEST_CASE("attention in bf16: every result is rounded, none by more than a few roundings", "[attention]") {
  AttentionOptions options = attention_options(150, {150, 40, 0});
  const bool many_slots = GENERATE(false, true), keep = GENERATE(false, true);
  options.dropout = DropoutRule(0.25);
  options.ramp = 16;
  const AttentionInputSizes sizes{
      .block = 70, .depth = 32, .slots = many_slots ? 600 : 5, .position_query = true, .span = {0.7, 0.15, 0.4}};
  const std::vector<Array64> x = attention_numbers("attention in bf16", options, sizes);
  const AttentionTruth wanted = run_attention(x, options);
  Array64 dout = wanted.out;
  reference::RandomArrays random(3);
  for (double& number : dout.data) number = random.number();
  std::vector<Array64> truth = run_attention_backward(x, options, wanted, dout);
  truth.push_back(wanted.out);

  // Of every gradient and of the output: |got - truth| / |truth|.
  const auto distances = [&](ProductPrecision precision) {
    const AttentionCall call{.dtype = DType::f32, .keep = keep, .products = precision};
    const AttentionTruth got = run_attention(x, options, call);
    std::vector<Array64> all = run_attention_backward(x, options, got, dout, call);
    all.push_back(got.out);
    std::vector<double> found;
    for (std::size_t i = 0; i < all.size(); ++i) {
      double difference = 0, size = 0;
      for (std::size_t k = 0; k < all[i].data.size(); ++k) {
        difference += std::pow(all[i].data[k] - truth[i].data[k], 2);
        size += std::pow(truth[i].data[k], 2);
      }
      if (size > 0) found.push_back(std::sqrt(difference / size));
    }
    return found;
  };
  const std::vector<double> f32 = distances(ProductPrecision::f32), bf16 = distances(ProductPrecision::bf16);
  REQUIRE(f32.size() == 11);
  // The spacing of bf16 numbers is 1/128 of their size: one rounding is wrong by 0.2% in the mean.
  for (std::size_t i = 0; i < f32.size(); ++i) {
    CAPTURE(i);
    CHECK(f32[i] < 2e-5);
    CHECK(bf16[i] > 3e-4);
    CHECK(bf16[i] < 0.03);
  }
}

}  // namespace
}  // namespace engram::harness::rounded_products_test
