/// Values of the adaptive span's mask and of its windows: [all-attention 1.6, 1.7], T1, T11.

#include "core/rules/span_mask.hpp"

#include "core/error.hpp"
#include "core/rules/head_windows.hpp"
#include "tests/harness/catch.hpp"

namespace engram::span_mask_test {
namespace {

TEST_CASE("span mask: values of T1", "[core]") {
  struct Row {
    double zeta;
    int offset;
    double mask[8];
  };
  const Row rows[] = {{0.25, 0, {1, 1, 1, 0.75, 0.5, 0.25, 0, 0}},
                      {0.3, 0, {1, 1, 1, 0.85, 0.6, 0.35, 0.1, 0}},
                      {0.25, 1, {1, 1, 0.75, 0.5, 0.25, 0, 0, 0}}};
  for (const Row& row : rows)
    for (int distance = 1; distance <= 8; ++distance) {
      INFO("zeta " << row.zeta << ", offset " << row.offset << ", distance " << distance);
      const double x = distance - 1 + row.offset;
      CHECK(span_mask(8 * row.zeta, x, 4.0) == Approx(row.mask[distance - 1]).margin(1e-14).epsilon(0));
      CHECK(span_mask(static_cast<float>(8 * row.zeta), static_cast<float>(x), 4.0f) ==
            Approx(row.mask[distance - 1]).margin(1e-6).epsilon(0));
    }
}

TEST_CASE("span mask: one at distance one, nothing masked at the largest span", "[core]") {
  for (const double zeta : {0.0, 0.1, 1.0}) CHECK(span_mask(100 * zeta, 0.0, 32.0) == 1);
  for (int distance = 1; distance <= 100; ++distance) CHECK(span_mask(100.0, distance - 1.0, 32.0) == 1);
}

TEST_CASE("span trim: the tables of section 1.7 and T11", "[core]") {
  struct Row {
    double zeta;
    int max_span, ramp, size, trim, window, cache;
  };
  const Row rows[] = {{0, 8192, 32, 32, 8128, 64, 128},
                      {0.25, 8192, 32, 2080, 6080, 2112, 2176},
                      {1, 8192, 32, 8192, 0, 8192, 8192},
                      {0, 100, 32, 32, 64, 36, 100},
                      {0, 32, 32, 32, 0, 32, 32},
                      {0, 16, 32, 16, 0, 16, 16},
                      {0.5, 1024, 32, 544, 448, 576, 640},
                      {0, 2048, 32, 32, 1984, 64, 128},
                      {0.25, 8, 4, 6, 0, 8, 8},  // T1
                      {0.3, 8, 4, 7, 0, 8, 8}};
  for (const Row& row : rows) {
    INFO("zeta " << row.zeta << ", S " << row.max_span);
    const SpanTrim got = span_trim(row.zeta, row.max_span, row.ramp);
    CHECK(got.size == row.size);
    CHECK(got.trim == row.trim);
    CHECK(got.window == row.window);
    CHECK(got.cache == row.cache);
  }
}

TEST_CASE("span trim: nothing inside the mask is ever cut off", "[core]") {
  for (int max_span = 1; max_span < 300; max_span += 13)
    for (int percent = 0; percent <= 100; percent += 7) {
      const double zeta = percent / 100.0;
      const SpanTrim got = span_trim(zeta, max_span, 32);
      CHECK(got.window >= got.size);
      CHECK(got.cache >= got.window);
      CHECK(got.window >= 1);
      if (got.window < max_span) CHECK(span_mask(zeta * max_span, static_cast<double>(got.window), 32.0) == 0);
    }
}

TEST_CASE("head windows: the packed layout", "[core]") {
  const HeadWindows windows({3, 0, 64, 5});
  CHECK(windows.heads() == 4);
  CHECK(windows.first == std::vector<std::int64_t>{0, 3, 3, 67});
  CHECK(windows.total == 72);
  CHECK(windows.longest == 64);
  CHECK(HeadWindows().total == 0);
  CHECK_THROWS_AS(HeadWindows({3, -1}), ShapeError);
}

}  // namespace
}  // namespace engram::span_mask_test
