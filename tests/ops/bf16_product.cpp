/// Products by the processor's bf16 instructions, each kind by itself, against sums of rounded numbers in f64. What the
/// ops make of them is in rounded_products.cpp, which runs everywhere.

#include "cpu/bf16_product.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "cpu/packed_rows.hpp"
#include "tests/harness/catch.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::bf16_product_test {
namespace {

using cpu::Bf16Instructions;
using cpu::Gemm;
using kernels::Transpose;

struct Sizes {
  std::int64_t m, n, k;
};

/// Aligned as packed operands must be, guard words behind.
class Packed {
 public:
  explicit Packed(std::int64_t size) : size_(size), data_(new (std::align_val_t{64}) bf16[std::size_t(size + kGuard)]) {
    for (std::int64_t i = 0; i < size + kGuard; ++i) data_.get()[i].bits = kMark;
  }
  bf16* data() const { return data_.get(); }
  bool guard_is_intact() const {
    for (std::int64_t i = size_; i < size_ + kGuard; ++i)
      if (data_.get()[i].bits != kMark) return false;
    return true;
  }

 private:
  static constexpr std::int64_t kGuard = 64;
  static constexpr std::uint16_t kMark = 0x7fc1;  // not a number
  struct Delete {
    void operator()(bf16* memory) const { ::operator delete[](memory, std::align_val_t{64}); }
  };
  std::int64_t size_;
  std::unique_ptr<bf16[], Delete> data_;
};

/// Operands in rows that are longer than needed, NaNs in between.
std::vector<float> padded(reference::RandomArrays& random, std::int64_t rows, std::int64_t length,
                          std::int64_t stride) {
  std::vector<float> numbers(std::size_t(rows * stride), std::numeric_limits<float>::quiet_NaN());
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < length; ++i) numbers[std::size_t(row * stride + i)] = float(random.number());
  return numbers;
}

double rounded(float x) { return static_cast<double>(static_cast<float>(bf16(x))); }

/// The product in two rectangles of strips, so that ranges are met that neither begin at zero nor end at the last one.
void multiply(const Gemm<float>& g, Bf16Instructions instructions) {
  const Packed a(cpu::packed_size(g.m, g.k)), b(cpu::packed_size(g.n, g.k));
  const std::int64_t rows = cpu::strips_of(g.m), columns = cpu::strips_of(g.n);
  cpu::pack_a(g, rows / 2, rows, a.data());
  cpu::pack_a(g, 0, rows / 2, a.data());
  cpu::pack_b(g, 0, columns, b.data());
  cpu::multiply_strips(g, a.data(), b.data(), {0, rows, 0, columns / 3}, instructions);
  cpu::multiply_strips(g, a.data(), b.data(), {0, rows, columns / 3, columns}, instructions);
  CHECK(a.guard_is_intact());
  CHECK(b.guard_is_intact());
}

/// Only few processors have tiles. What then runs instead is tested everywhere.
bool lacks(Bf16Instructions instructions) {
  if (cpu::available_bf16_instructions() >= instructions) return false;
  WARN("not tested: this processor lacks " << (instructions == Bf16Instructions::tiles ? "AMX" : "AVX-512 BF16"));
  return true;
}

TEST_CASE("products of packed bf16 operands, by every kind of instructions", "[gemm]") {
  const auto instructions = GENERATE(Bf16Instructions::vectors, Bf16Instructions::tiles);
  if (lacks(instructions)) return;
  // Whole tiles, ends of tiles on every side, one element; an inner axis and columns of more than one pass.
  const Sizes sizes = GENERATE(Sizes{32, 32, 32}, Sizes{64, 96, 64}, Sizes{1, 1, 1}, Sizes{5, 17, 33}, Sizes{31, 1, 95},
                               Sizes{1, 47, 2}, Sizes{37, 45, 70}, Sizes{40, 300, 1100}, Sizes{48, 16, 1025});
  const auto transpose_a = GENERATE(Transpose::no, Transpose::yes),
             transpose_b = GENERATE(Transpose::no, Transpose::yes);
  const auto write = GENERATE(Write::set, Write::add);
  const float factor = GENERATE(1.0f, 0.375f);
  CAPTURE(int(instructions), sizes.m, sizes.n, sizes.k, int(transpose_a), int(transpose_b), int(write), factor);

  const bool ta = transpose_a == Transpose::yes, tb = transpose_b == Transpose::yes;
  const std::int64_t a_length = ta ? sizes.m : sizes.k, b_length = tb ? sizes.k : sizes.n;
  reference::RandomArrays random(7);
  const std::vector<float> a = padded(random, ta ? sizes.k : sizes.m, a_length, a_length + 5);
  const std::vector<float> b = padded(random, tb ? sizes.n : sizes.k, b_length, b_length + 3);
  const std::int64_t c_stride = sizes.n + 2;
  const std::vector<float> before = padded(random, sizes.m, c_stride, c_stride);
  std::vector<float> c = before;
  if (write == Write::set)  // what is not read may be anything
    for (std::int64_t i = 0; i < sizes.m; ++i)
      std::fill_n(c.begin() + i * c_stride, sizes.n, std::numeric_limits<float>::quiet_NaN());
  const Gemm<float> product{.transpose_a = transpose_a,
                            .transpose_b = transpose_b,
                            .m = sizes.m,
                            .n = sizes.n,
                            .k = sizes.k,
                            .factor = factor,
                            .a = a.data(),
                            .a_stride = a_length + 5,
                            .b = b.data(),
                            .b_stride = b_length + 3,
                            .write = write,
                            .c = c.data(),
                            .c_stride = c_stride};
  multiply(product, instructions);

  double worst = 0;
  bool beside = true;
  for (std::int64_t i = 0; i < sizes.m; ++i) {
    for (std::int64_t j = 0; j < sizes.n; ++j) {
      double sum = 0;
      for (std::int64_t x = 0; x < sizes.k; ++x)
        sum += rounded(a[std::size_t(ta ? x * product.a_stride + i : i * product.a_stride + x)]) *
               rounded(b[std::size_t(tb ? j * product.b_stride + x : x * product.b_stride + j)]);
      const auto at = std::size_t(i * c_stride + j);
      const double wanted = factor * sum + (write == Write::add ? double(before[at]) : 0.0);
      const double difference = std::abs(double(c[at]) - wanted);
      worst = std::isnan(difference) ? std::numeric_limits<double>::infinity() : std::max(worst, difference);
    }
    for (std::int64_t j = sizes.n; j < c_stride; ++j)
      beside = beside && c[std::size_t(i * c_stride + j)] == before[std::size_t(i * c_stride + j)];
  }
  // Sums in f32 of k numbers of size about 1, in any order.
  CHECK(worst < 1e-6 * std::sqrt(double(sizes.k)) * 4);
  CHECK(beside);
  // Repeated, the same bits.
  std::vector<float> again = before;
  Gemm<float> repeated = product;
  repeated.c = again.data();
  multiply(repeated, instructions);
  CHECK(std::equal(again.begin(), again.end(), c.begin(), c.end()));
}

TEST_CASE("products of bf16 operands carry infinities and NaNs", "[gemm]") {
  const auto instructions = GENERATE(Bf16Instructions::vectors, Bf16Instructions::tiles);
  if (lacks(instructions)) return;
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{1, 0, infinity, 2, nan, 0}, b{1, 2};  // a: [3, 2]
  std::vector<float> c(3);
  multiply({.m = 3,
            .n = 1,
            .k = 2,
            .a = a.data(),
            .a_stride = 2,
            .b = b.data(),
            .b_stride = 1,
            .c = c.data(),
            .c_stride = 1},
           instructions);
  CHECK(c[0] == 1);
  CHECK(c[1] == infinity);
  CHECK(std::isnan(c[2]));
}

TEST_CASE("rows that are packed once serve products of a part of them, bit for bit", "[gemm]") {
  const auto instructions = GENERATE(Bf16Instructions::vectors, Bf16Instructions::tiles);
  if (lacks(instructions)) return;
  constexpr std::int64_t kRows = 150, kDepth = 40, kQueries = 21;
  const std::int64_t first = GENERATE(0, 16, 32, 96), count = GENERATE(1, 16, 47, 54);
  CAPTURE(int(instructions), first, count);
  reference::RandomArrays random(11);
  const std::vector<float> rows = padded(random, kRows, kDepth, kDepth + 3);
  const std::vector<float> queries = padded(random, kQueries, kDepth, kDepth);
  const std::vector<float> weights = padded(random, kQueries, count, count);
  const cpu::RowUses uses{.against = true, .times = true};
  const Packed memory(cpu::PackedRows::size(kRows, kDepth, uses));
  const cpu::PackedRows packed(kRows, kDepth, uses, memory.data());
  packed.pack(rows.data(), kDepth + 3);
  CHECK(memory.guard_is_intact());

  const auto compare = [&](Gemm<float> product, const cpu::PackedB& part) {
    product.b = rows.data() + first * (kDepth + 3);
    product.b_stride = kDepth + 3;
    product.m = kQueries;
    std::vector<float> wanted(std::size_t(kQueries * product.n)), got = wanted;
    product.c_stride = product.n;
    product.c = wanted.data();
    multiply(product, instructions);
    const Packed a(cpu::packed_size(product.m, product.k));
    cpu::pack_a(product, 0, cpu::strips_of(product.m), a.data());
    product.c = got.data();
    cpu::multiply_strips(product, a.data(), part, {0, cpu::strips_of(product.m), 0, cpu::strips_of(product.n)},
                         instructions);
    CHECK(got == wanted);
  };
  compare({.transpose_b = Transpose::yes, .n = count, .k = kDepth, .a = queries.data(), .a_stride = kDepth},
          packed.against(first));
  // A tile of the inner axis has 32 places.
  CHECK(bool(packed.times(first)) == (first % 32 == 0));
  if (first % 32 == 0) compare({.n = kDepth, .k = count, .a = weights.data(), .a_stride = count}, packed.times(first));
  CHECK_FALSE(packed.against(first + 8));
}

}  // namespace
}  // namespace engram::harness::bf16_product_test
