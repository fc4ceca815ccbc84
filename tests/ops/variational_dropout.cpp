/// Dropout whose decisions are shared: over time (T16 of [transformer-xl 12]), and by all places of a word.

#include <algorithm>
#include <cmath>

#include "autograd/functions/dropout.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/harness/op_table.hpp"

namespace engram::harness::variational_dropout_test {
namespace {

/// What the definition in core/random_stream.hpp says of one element of the first operation's stream.
double multiplier(const DropoutRule& rule, std::int64_t element) {
  const auto place = static_cast<std::uint64_t>(element);
  const PhiloxBlock block = random_stream(0).draw(place / DropoutRule::kElementsPerBlock);
  return rule.keeps(block, static_cast<int>(place % DropoutRule::kElementsPerBlock)) ? rule.multiplier : 0;
}

Array64 dropped_over_time(const Array64& x, double rate) {
  Array64 y = x;
  const std::int64_t times = x.axis(-2), n = x.axis(-1), streams = x.count() / (times * n);
  std::size_t k = 0;
  for (std::int64_t stream = 0; stream < streams; ++stream)
    for (std::int64_t time = 0; time < times; ++time)
      for (std::int64_t feature = 0; feature < n; ++feature)
        y.data[k++] *= multiplier(DropoutRule(rate), stream * n + feature);
  return y;
}

Array64 dropped_words(const Array64& x, const Array64& ids, double rate) {
  Array64 y = x;
  const std::int64_t n = x.axis(-1);
  for (std::int64_t row = 0; row < ids.count(); ++row)
    for (std::int64_t i = row * n; i < (row + 1) * n; ++i)
      y.data[static_cast<std::size_t>(i)] *=
          multiplier(DropoutRule(rate), integers(ids)[static_cast<std::size_t>(row)]);
  return y;
}

const auto over_time = [](std::span<const Variable> x) { return variational_dropout(x[0], 0.3); };
const auto of_words = [](std::span<const Variable> x) { return word_dropout(x[0], x[1].value(), 0.3); };

const OpCases cases{
    // Rows that end inside a block of random numbers, that are longer than a piece, and chunks that end inside a
    // stream.
    OpCase{.name = "variational_dropout",
           .inputs = {{normal({2, 3, 7})},
                      {normal({1, 1, 1})},
                      {normal({4, 24})},
                      {normal({2, 2, 3, 16})},
                      {normal({2, 37, 1031})},
                      {normal({3, 50, 512})}},
           .function = over_time,
           .reference = [](std::span<const Array64> x) { return dropped_over_time(x[0], 0.3); },
           .tolerance = {.bf16 = kRounding},
           .dropout = true,
           .errors = {{.inputs = {normal({3})}, .contains = {"[..., time, n]", "[3]"}},
                      {.inputs = {normal({3, 2})},
                       .contains = {"[0, 1 - 2^-17)", "1.5"},
                       .function = [](std::span<const Variable> x) { return variational_dropout(x[0], 1.5); }}}},
    OpCase{.name = "word_dropout",
           .inputs = {{normal({2, 3, 7}), index({2, 3}, 4)},
                      {normal({1, 1}), index({1}, 1)},
                      {normal({35, 16}), index({35}, 100000)},
                      {normal({37, 1031}), index({37}, 9)},
                      {normal({4, 3}), integers({4}, {2147483647, 0, 2147483647, 8})}},
           .function = of_words,
           .reference = [](std::span<const Array64> x) { return dropped_words(x[0], x[1], 0.3); },
           .tolerance = {.bf16 = kRounding},
           .dropout = true,
           .errors = {{.inputs = {normal({4, 3}), index({3}, 4)}, .contains = {"[ids..., n]", "[4, 3]", "[3]"}},
                      {.inputs = {normal({4}), index({4}, 4)}, .contains = {"[ids..., n]", "[4]"}},
                      {.inputs = {normal({4, 3}), normal({4})}, .contains = {"the ids", "i32", "f32"}},
                      {.inputs = {normal({4, 3}), index({4}, 4)},
                       .contains = {"[0, 1 - 2^-17)", "-1"},
                       .function = [](std::span<const Variable> x) { return word_dropout(x[0], x[1].value(), -1); }}}},
};

struct OnesFixture {
  Backend& backend = *available_backends().front();
  GuardedAllocator memory{backend};
  Step step{backend, memory, run_seed()};
  Tape tape{step};

  OnesFixture() { step.begin(run_scalars()); }
  Variable ones(Shape shape) {
    return tape.leaf(on_device(shape, harness::values(shape, std::vector(places(shape), 1.0))));
  }
  Tensor ids(std::vector<double> numbers) {
    const Shape shape{static_cast<std::int64_t>(numbers.size())};
    return on_device(shape, harness::integers(shape, std::move(numbers)));
  }
  std::vector<double> numbers(const Variable& x) { return to_host(backend, x.value()).data; }

 private:
  static std::size_t places(const Shape& shape) { return static_cast<std::size_t>(shape.count()); }
  Tensor on_device(const Shape& shape, const Input& input) {
    return to_device(backend, memory, Array64{{shape.count()}, input.values}, input, DType::f64).view(shape);
  }
};

TEST_CASE_METHOD(OnesFixture, "T16: the variational mask is constant over time and of each stream", "[ops]") {
  constexpr std::size_t kStreams = 3, kTimes = 9, kFeatures = 500;
  const std::vector<double> y = numbers(variational_dropout(ones({kStreams, kTimes, kFeatures}), 0.25));
  const auto row = [&y](std::size_t stream, std::size_t time) {
    const auto first = y.begin() + static_cast<std::ptrdiff_t>((stream * kTimes + time) * kFeatures);
    return std::vector<double>(first, first + kFeatures);
  };
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    for (std::size_t time = 1; time < kTimes; ++time) CHECK(row(stream, time) == row(stream, 0));
    const std::vector<double> mask = row(stream, 0);
    const auto kept = static_cast<std::size_t>(std::ranges::count(mask, 4 / 3.0));
    CHECK(kept + static_cast<std::size_t>(std::ranges::count(mask, 0.0)) == kFeatures);
    CHECK(kept == Approx(0.75 * kFeatures).margin(5 * std::sqrt(kFeatures * 0.25 * 0.75)));
  }
  CHECK(row(0, 0) != row(1, 0));
  CHECK(row(1, 0) != row(2, 0));
  // Without axes of streams, as for a table of distances: one mask for all its rows. Another call draws another.
  const std::vector<double> table = numbers(variational_dropout(ones({kTimes, kFeatures}), 0.25));
  CHECK(std::vector(table.begin(), table.begin() + kFeatures) == std::vector(table.end() - kFeatures, table.end()));
  CHECK(std::vector(table.begin(), table.begin() + kFeatures) != row(0, 0));
}

TEST_CASE_METHOD(OnesFixture, "T16: dropout that keeps everything is no dropout, but for its factor", "[ops]") {
  constexpr double kRate = 1 / 65536.0;  // the smallest there is: at these few places nothing is dropped
  const double factor = DropoutRule(kRate).multiplier;
  REQUIRE(DropoutRule(kRate).active());
  const std::vector<double> all(24, factor);
  CHECK(numbers(dropout(ones({2, 3, 4}), kRate)) == all);
  CHECK(numbers(variational_dropout(ones({2, 3, 4}), kRate)) == all);
  CHECK(numbers(word_dropout(ones({6, 4}), ids({0, 1, 2, 3, 2, 1}), kRate)) == all);
  CHECK(factor == Approx(1).epsilon(2e-5));
}

TEST_CASE_METHOD(OnesFixture, "word dropout drops a word at all its places or at none", "[ops]") {
  constexpr int kWords = 400;
  std::vector<double> places;
  for (int i = 0; i < 3 * kWords; ++i) places.push_back(i % kWords);
  const std::vector<double> y = numbers(word_dropout(ones({3 * kWords, 2}), ids(places), 0.25));
  int kept = 0;
  for (std::size_t word = 0; word < kWords; ++word) {
    const double first = y[2 * word];
    CHECK((first == 0 || first == 4 / 3.0));
    kept += first > 0;
    for (std::size_t place = word; place < 3 * kWords; place += kWords) {
      CHECK(y[2 * place] == first);
      CHECK(y[2 * place + 1] == first);
    }
  }
  CHECK(kept == Approx(0.75 * kWords).margin(5 * std::sqrt(kWords * 0.25 * 0.75)));
}

TEST_CASE_METHOD(OnesFixture, "shared dropout: rate 0 and inference mode return the input and draw nothing", "[ops]") {
  Tape inference(step, Tape::Mode::inference);
  const Variable x = ones({3, 2}), y = inference.constant(x.value());
  const Tensor words = ids({0, 1, 2});
  for (const Variable& same :
       {variational_dropout(x, 0), word_dropout(x, words, 0), variational_dropout(y, 0.5), word_dropout(y, words, 0.5)})
    CHECK(same.value().raw() == x.value().raw());
  CHECK(step.next_random().operation == 0);
}

}  // namespace
}  // namespace engram::harness::variational_dropout_test
