/// The products that all CPU kernels stand on: Eigen, what the size asks for and the threaded form against a plain
/// loop.

#include "cpu/gemm.hpp"

#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/signal_storm.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::cpu::gemm_test {
namespace {

/// Sizes, how the operands are stored, and how many unused elements follow each stored row.
struct Case {
  std::int64_t m, n, k;
  Transpose transpose_a, transpose_b;
  std::int64_t gap_a, gap_b, gap_c;
  Write write;
  double factor;
};

/// A copy of numbers but for the last `left_out`, right before memory that may not be touched.
template <class T>
class GuardedNumbers {
 public:
  GuardedNumbers(const std::vector<T>& numbers, std::int64_t left_out) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t count = numbers.size() - std::min(numbers.size(), static_cast<std::size_t>(left_out));
    const std::size_t bytes = (count * sizeof(T) + page - 1) / page * page;
    size_ = bytes + page;
    memory_ = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(memory_ != MAP_FAILED);
    REQUIRE(mprotect(static_cast<char*>(memory_) + bytes, page, PROT_NONE) == 0);
    data_ = reinterpret_cast<T*>(static_cast<char*>(memory_) + bytes) - count;
    std::copy_n(numbers.begin(), count, data_);
  }
  ~GuardedNumbers() { munmap(memory_, size_); }
  GuardedNumbers(const GuardedNumbers&) = delete;
  GuardedNumbers& operator=(const GuardedNumbers&) = delete;
  const T* data() const { return data_; }

 private:
  void* memory_;
  std::size_t size_;
  T* data_;
};

template <class T>
class Product {
 public:
  explicit Product(const Case& sizes) : case_(sizes) {
    const bool ta = sizes.transpose_a == Transpose::yes, tb = sizes.transpose_b == Transpose::yes;
    stride_a_ = (ta ? sizes.m : sizes.k) + sizes.gap_a;
    stride_b_ = (tb ? sizes.k : sizes.n) + sizes.gap_b;
    stride_c_ = sizes.n + sizes.gap_c;
    reference::RandomArrays random(17);
    const auto fill = [&random](std::vector<T>& x, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) x.push_back(static_cast<T>(random.number()));
    };
    fill(a_, (ta ? sizes.k : sizes.m) * stride_a_);
    fill(b_, (tb ? sizes.n : sizes.k) * stride_b_);
    fill(c_, sizes.m * stride_c_);
    // What lies between rows must not matter, nor what lies behind the last one.
    spoil_gaps(a_, stride_a_, sizes.gap_a);
    spoil_gaps(b_, stride_b_, sizes.gap_b);
    wanted_.assign(c_.begin(), c_.end());
    for (std::int64_t i = 0; i < sizes.m; ++i)
      for (std::int64_t j = 0; j < sizes.n; ++j) {
        double& element = wanted_[static_cast<std::size_t>(i * stride_c_ + j)];
        double sum = 0;
        for (std::int64_t l = 0; l < sizes.k; ++l) sum += a(i, l) * b(l, j);
        element = sizes.factor * sum + (sizes.write == Write::add ? element : 0);
      }
  }

  template <class Function>
  std::vector<T> by(Function function) const {
    const GuardedNumbers<T> a(a_, case_.gap_a), b(b_, case_.gap_b);
    std::vector<T> c = c_;
    function(Gemm<T>{.transpose_a = case_.transpose_a,
                     .transpose_b = case_.transpose_b,
                     .m = case_.m,
                     .n = case_.n,
                     .k = case_.k,
                     .factor = static_cast<T>(case_.factor),
                     .a = a.data(),
                     .a_stride = stride_a_,
                     .b = b.data(),
                     .b_stride = stride_b_,
                     .write = case_.write,
                     .c = c.data(),
                     .c_stride = stride_c_});
    return c;
  }

  /// The worst error in units of (|factor| k + 1) times the rounding of T; infinite if an unused element changed.
  double error(const std::vector<T>& got) const {
    double worst = 0;
    for (std::size_t place = 0; place < got.size(); ++place) {
      const bool unused = static_cast<std::int64_t>(place) % stride_c_ >= case_.n;
      if (unused && got[place] != c_[place]) return std::numeric_limits<double>::infinity();
      const double difference = unused ? 0 : std::abs(static_cast<double>(got[place]) - wanted_[place]);
      worst = difference <= worst ? worst : std::isnan(difference) ? INFINITY : difference;
    }
    return worst / ((std::abs(case_.factor) * static_cast<double>(case_.k) + 1) *
                    static_cast<double>(std::numeric_limits<T>::epsilon()));
  }

 private:
  double a(std::int64_t i, std::int64_t l) const {
    const bool t = case_.transpose_a == Transpose::yes;
    return a_[static_cast<std::size_t>(t ? l * stride_a_ + i : i * stride_a_ + l)];
  }
  double b(std::int64_t l, std::int64_t j) const {
    const bool t = case_.transpose_b == Transpose::yes;
    return b_[static_cast<std::size_t>(t ? j * stride_b_ + l : l * stride_b_ + j)];
  }

  static void spoil_gaps(std::vector<T>& rows, std::int64_t stride, std::int64_t gap) {
    for (std::int64_t end = stride; gap > 0 && end <= std::ssize(rows); end += stride)
      std::fill_n(rows.begin() + (end - gap), gap, std::numeric_limits<T>::quiet_NaN());
  }

  Case case_;
  std::int64_t stride_a_, stride_b_, stride_c_;
  std::vector<T> a_, b_, c_;
  std::vector<double> wanted_;  // of c, computed by the plain loop
};

/// All transposes, with and without gaps, set and add.
std::vector<Case> all_forms(std::int64_t m, std::int64_t n, std::int64_t k) {
  std::vector<Case> forms;
  for (const Transpose ta : {Transpose::no, Transpose::yes})
    for (const Transpose tb : {Transpose::no, Transpose::yes})
      for (const Write write : {Write::set, Write::add})
        for (const bool gaps : {false, true})
          forms.push_back({m, n, k, ta, tb, gaps ? 3 : 0, gaps ? 1 : 0, gaps ? 5 : 0, write, gaps ? -0.75 : 1.0});
  return forms;
}

template <class T>
void check_all(const Case& c) {
  CAPTURE(c.m, c.n, c.k, c.transpose_a == Transpose::yes, c.transpose_b == Transpose::yes, c.gap_c,
          c.write == Write::add);
  const Product<T> product(c);
  CHECK(product.error(product.by([](const Gemm<T>& g) { gemm_eigen(g); })) < 2);
  CHECK(product.error(product.by([](const Gemm<T>& g) { gemm(g); })) < 2);
  if constexpr (std::is_same_v<T, float>)
    if (detail::kHaveOneDnn && c.m * c.n * c.k > 0)
      CHECK(product.error(product.by([](const Gemm<T>& g) { detail::gemm_onednn(g); })) < 2);
  CHECK(product.error(product.by([](const Gemm<T>& g) { parallel_gemm(g); })) < 2);
}

struct Sizes {
  std::int64_t m, n, k;
};

TEST_CASE("gemm: every form of small products", "[gemm]") {
  const Sizes sizes = GENERATE(Sizes{1, 1, 1}, Sizes{1, 7, 5}, Sizes{7, 1, 5}, Sizes{7, 5, 1}, Sizes{3, 4, 0},
                               Sizes{0, 4, 3}, Sizes{4, 0, 3}, Sizes{13, 17, 19});
  for (const Case& form : all_forms(sizes.m, sizes.n, sizes.k)) {
    check_all<float>(form);
    check_all<double>(form);
  }
}

// Every number of rows and of columns that blocks of sums may have left, in pieces of the inner axis too.
TEST_CASE("gemm: every form of products that are no whole blocks", "[gemm]") {
  for (std::int64_t columns = 1; columns <= 40; columns += 3)
    for (const Case& form : all_forms(2 + columns % 25, columns, 40 - columns)) check_all<float>(form);
  for (std::int64_t columns = 2; columns <= 20; columns += 3)
    for (const Case& form : all_forms(25 - columns, columns, 20 - columns)) check_all<double>(form);
  for (const Case& form : all_forms(7, 66, 577)) {
    check_all<float>(form);
    check_all<double>(form);
  }
}

TEST_CASE("gemm: an element's bits do not depend on the rows and columns beside it", "[gemm]") {
  for (const Case& form : all_forms(29, 75, 300)) {
    CAPTURE(form.transpose_a == Transpose::yes, form.transpose_b == Transpose::yes, form.write == Write::add);
    const Product<float> product(form);
    const std::vector<float> all = product.by([](const Gemm<float>& g) { gemm(g); });
    const std::vector<float> parts = product.by([&](const Gemm<float>& g) {
      for (const auto& [row, rows] : {std::pair<std::int64_t, std::int64_t>(0, 5), {5, 2}, {7, 22}})
        for (const auto& [column, columns] : {std::pair<std::int64_t, std::int64_t>(0, 33), {33, 2}, {35, 40}}) {
          Gemm<float> part = g;
          part.m = rows;
          part.n = columns;
          part.a += row * (g.transpose_a == Transpose::yes ? 1 : g.a_stride);
          part.b += column * (g.transpose_b == Transpose::yes ? g.b_stride : 1);
          part.c += row * g.c_stride + column;
          gemm(part);
        }
    });
    CHECK(std::memcmp(all.data(), parts.data(), all.size() * sizeof(float)) == 0);
  }
}

// Where work is cut into pieces.
TEST_CASE("gemm: every form of large products", "[gemm]") {
  const Sizes sizes = GENERATE(Sizes{67, 61, 59}, Sizes{1, 1031, 257}, Sizes{1031, 1, 257}, Sizes{257, 1031, 1},
                               Sizes{64, 135, 64}, Sizes{263, 67, 33}, Sizes{33, 263, 71}, Sizes{17, 2, 9001});
  for (const Case& form : all_forms(sizes.m, sizes.n, sizes.k)) {
    check_all<float>(form);
    check_all<double>(form);
  }
}

// Where f32 goes to the library, if it is faster.
TEST_CASE("gemm: every form of products of four million multiply-adds", "[gemm]") {
  for (const Case& form : all_forms(131, 180, 179)) check_all<float>(form);
}

class Threads {
 public:
  explicit Threads(int count) : before_(omp_get_max_threads()) { omp_set_num_threads(count); }
  ~Threads() { omp_set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

template <class T>
void check_threads(const Case& c) {
  CAPTURE(c.m, c.n, c.k, c.transpose_a == Transpose::yes, c.transpose_b == Transpose::yes);
  const Product<T> product(c);
  const auto with = [&](int count) {
    const Threads threads(count);
    return product.by([](const Gemm<T>& g) { parallel_gemm(g); });
  };
  const std::vector<T> one = with(1);
  for (const int count : {2, 3}) {
    const std::vector<T> several = with(count);
    CHECK(std::memcmp(one.data(), several.data(), one.size() * sizeof(T)) == 0);
  }
}

TEST_CASE("parallel_gemm: the same bits with any number of threads", "[gemm]") {
  const Sizes sizes = GENERATE(Sizes{5, 7, 3}, Sizes{263, 67, 33}, Sizes{67, 263, 71}, Sizes{300, 300, 190},
                               Sizes{1, 4099, 129}, Sizes{4099, 1, 129}, Sizes{16, 16, 4099}, Sizes{512, 515, 65});
  const std::vector<Case> forms = all_forms(sizes.m, sizes.n, sizes.k);
  // Of the large ones every fifth, which still has all transposes: instrumented builds take long for them.
  const std::size_t stride = sizes.m * sizes.n * sizes.k > (1 << 23) ? 5 : 1;
  for (std::size_t i = 0; i < forms.size(); i += stride) {
    check_threads<float>(forms[i]);
    check_threads<double>(forms[i]);
  }
}

}  // namespace
TEST_CASE("products: thousands of signals, whose handlers run on the stack they find, change no bit") {
  std::int64_t signals = 0;
  for (const auto& [m, n, k] :
       {std::array{100, 100, 100}, {99, 101, 97}, {1024, 96, 96}, {96, 96, 1024}, {512, 512, 512}, {1024, 256, 256}})
    for (const auto& [ta, tb] :
         {std::pair(Transpose::no, Transpose::no), {Transpose::no, Transpose::yes}, {Transpose::yes, Transpose::no}}) {
      CAPTURE(m, n, k, ta == Transpose::yes, tb == Transpose::yes);
      const Product<float> product(Case{m, n, k, ta, tb, 0, 0, 0, Write::set, 1.0});
      // The library's products are those with handlers on their stack.
      const auto multiply = [](const Gemm<float>& g) {
        if (detail::kHaveOneDnn) return detail::gemm_onednn(g);
        parallel_gemm(g);
      };
      const std::vector<float> undisturbed = product.by(multiply);
      const harness::SignalStorm storm;
      do {
        // Memory between what the library has, so that it is seen when it is overwritten.
        const std::vector<float> got = product.by(multiply);
        REQUIRE(std::memcmp(got.data(), undisturbed.data(), got.size() * sizeof(float)) == 0);
      } while (storm.signals() < 200);
      signals += storm.signals();
    }
  CHECK(signals >= 3000);
}

}  // namespace engram::cpu::gemm_test
