/// What recurrent layers must compute whatever their weights are, and closed forms.

#include <omp.h>

#include <limits>

#include "autograd/functions/recurrence.hpp"
#include "autograd/functions/scale.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "cpu/recurrence/recurrence_lanes.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"

namespace engram::harness::recurrence_cells_test {
namespace {

constexpr RecurrenceOptions kLayers[] = {{.cell = RecurrentCell::rnn},
                                         {.cell = RecurrentCell::lstm},
                                         {.cell = RecurrentCell::hornn_fofe, .order = 3, .decay = 0.6},
                                         {.cell = RecurrentCell::hornn_gated, .order = 2}};

/// Numbers of a layer over a block of time, and what it makes of them.
struct Block {
  Array64 inputs, weight, hidden, cells, preceding, cotangent;
};
struct Results {
  Array64 outputs, cells, dinputs, dweight;
};

Array64 wave(double phase, std::vector<std::int64_t> shape, double size = 1) {
  Array64 x = reference::zeros(std::move(shape));
  for (std::size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = size * std::sin(phase + 1.7 * static_cast<double>(i) + 0.3 * std::cos(static_cast<double>(i)));
  return x;
}

Array64 part(const Array64& x, std::int64_t stream, std::int64_t streams, std::int64_t begin, std::int64_t end) {
  Array64 y = reference::zeros({streams, end - begin, x.axis(2)});
  for (std::int64_t b = 0; b < streams; ++b)
    for (std::int64_t t = begin; t < end; ++t)
      for (std::int64_t i = 0; i < x.axis(2); ++i) y.at(b, t - begin, i) = x.at(stream + b, t, i);
  return y;
}

/// Counts from those at the first step, with sequences that begin at `resets`, in all streams.
Array64 counts(std::int64_t streams, std::int64_t steps, std::int64_t before, std::vector<std::int64_t> resets = {}) {
  Array64 x = reference::zeros({streams, steps});
  for (std::int64_t b = 0; b < streams; ++b) {
    std::int64_t count = before;
    for (std::int64_t t = 0; t < steps; ++t) {
      for (const std::int64_t reset : resets)
        if (reset == t) count = 0;
      x.at(b, t) = static_cast<double>(count++);
    }
  }
  return x;
}

Block block(const RecurrenceOptions& options, std::int64_t streams, std::int64_t steps, std::int64_t units) {
  return {.inputs = wave(0.1, {streams, steps, options.input_blocks() * units}),
          .weight = wave(0.7, {options.weight_blocks() * units, units}, 1.2 / std::sqrt(static_cast<double>(units))),
          .hidden = wave(2, {streams, options.history(), units}, 0.9),
          .cells = wave(3, {streams, 1, units}),
          .preceding = counts(streams, steps, 100),
          .cotangent = wave(4, {streams, steps, units})};
}

/// The steps [begin, end) of it, after `before`, which ran over those ahead of them.
Block piece(const Block& whole, std::int64_t begin, std::int64_t end, const Array64& hidden, const Array64& cells) {
  const std::int64_t streams = whole.inputs.axis(0);
  Block some{.inputs = part(whole.inputs, 0, streams, begin, end),
             .weight = whole.weight,
             .hidden = hidden,
             .cells = cells,
             .preceding = reference::zeros({streams, end - begin}),
             .cotangent = part(whole.cotangent, 0, streams, begin, end)};
  for (std::int64_t b = 0; b < streams; ++b)
    for (std::int64_t t = begin; t < end; ++t) some.preceding.at(b, t - begin) = whole.preceding.at(b, t);
  return some;
}

struct Device {
  Backend& backend;
  GuardedAllocator memory{backend};
  Step step{backend, memory};

  explicit Device(Backend& device = each_device()) : backend(device) {}
  Tensor upload(const Array64& x, DType dtype, bool whole_numbers = false) {
    return to_device(backend, memory, x, Input{.integer = whole_numbers}, dtype);
  }
  Results run(const RecurrenceOptions& options, const Block& with, DType dtype = DType::f64) {
    Results results;
    {
      Tape tape(step);
      const Variable inputs = tape.leaf(upload(with.inputs, dtype)), weight = tape.leaf(upload(with.weight, dtype));
      const RecurrentStart start{with.hidden.given() ? upload(with.hidden, dtype) : Tensor{},
                                 with.cells.given() ? upload(with.cells, dtype) : Tensor{}};
      const Recurrence made =
          recurrence(scale(inputs, 1), weight, start, upload(with.preceding, DType::i32, true), options);
      results.outputs = to_host(backend, made.outputs.value());
      if (made.cells) results.cells = to_host(backend, made.cells);
      tape.backward(made.outputs, upload(with.cotangent, dtype));
      results.dinputs = to_host(backend, tape.gradient(inputs));
      results.dweight = to_host(backend, tape.gradient(weight));
    }
    CHECK(memory.faults().empty());
    return results;
  }
};

double worst(const Array64& got, const Array64& wanted) {
  REQUIRE(got.shape == wanted.shape);
  double difference = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    REQUIRE(std::isfinite(got.data[i]));
    difference = std::max(difference, std::fabs(got.data[i] - wanted.data[i]));
  }
  return difference;
}

TEST_CASE("recurrence: the functions of the CPU's vectors", "[ops]") {
  using Vector = cpu::CellLanes<float>::Vector;
  constexpr int kLanes = sizeof(Vector) / sizeof(float);
  double sigmoid_error = 0, tanh_error = 0, near_zero = 0;
  const auto check = [&](float x) {
    Vector v = Vector{} + x;
    const Vector s = cpu::VectorMath::sigmoid(v), t = cpu::VectorMath::tanh(v);
    for (int lane = 0; lane < kLanes; ++lane) {
      sigmoid_error = std::max(sigmoid_error, std::fabs(s[lane] - 1 / (1 + std::exp(-static_cast<double>(x)))));
      const double wanted = std::tanh(static_cast<double>(x));
      tanh_error = std::max(tanh_error, std::fabs(t[lane] - wanted));
      if (std::fabs(x) < 0.35 && x != 0) near_zero = std::max(near_zero, std::fabs(t[lane] / wanted - 1));
    }
  };
  for (double x = -20; x < 20; x += 0.00037) check(static_cast<float>(x));
  for (double x = 1e-30; x < 1; x *= 1.03) {
    check(static_cast<float>(x));
    check(static_cast<float>(-x));
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float x : {0.0f, 88.5f, -88.5f, 1e30f, -1e30f, kInfinity, -kInfinity}) check(x);
  CHECK(sigmoid_error < 2e-7);
  CHECK(tanh_error < 2e-7);
  CHECK(near_zero < 2e-7);
  const Vector nan = Vector{} + std::nanf("");
  CHECK(std::isnan(cpu::VectorMath::sigmoid(nan)[0]));
  CHECK(std::isnan(cpu::VectorMath::tanh(nan)[0]));
}

TEST_CASE("recurrence: an LSTM of zeros forgets by its forget bias alone", "[ops]") {
  Device device;
  const RecurrenceOptions options{.cell = RecurrentCell::lstm};
  Block zeros{.inputs = reference::zeros({1, 5, 4}),
              .weight = reference::zeros({4, 1}),
              .hidden = {},
              .cells = reference::constant(1, {1, 1, 1}),
              .preceding = counts(1, 5, 1),
              .cotangent = reference::constant(1, {1, 5, 1})};
  for (std::int64_t t = 0; t < 5; ++t) zeros.inputs.at(0, t, 1) = 1;
  const Results results = device.run(options, zeros);
  CHECK(results.cells.at(0, 4, 0) == Approx(0.2088146135).epsilon(1e-9));
  CHECK(results.outputs.at(0, 4, 0) == Approx(0.1029158057).epsilon(1e-9));
}

TEST_CASE("recurrence: higher orders on one unit", "[ops]") {
  Device device;
  Block one{.inputs = reference::zeros({1, 1, 1}),
            .weight = reference::constant(1, {3, 1}),
            .hidden = reference::array({1, 3, 1}, {0.2, 0.4, 0.8}),
            .cells = {},
            .preceding = counts(1, 1, 3),
            .cotangent = reference::constant(1, {1, 1, 1})};
  CHECK(device.run({.cell = RecurrentCell::hornn_fofe, .order = 3, .decay = 0.5}, one).outputs.data[0] ==
        Approx(0.4815497984).epsilon(1e-9));
  one.inputs = reference::zeros({1, 1, 4});
  one.weight = reference::array({6, 1}, {1, 1, 1, 0, 0, 0});
  CHECK(device.run({.cell = RecurrentCell::hornn_gated, .order = 3}, one).outputs.data[0] ==
        Approx(0.6043677771).epsilon(1e-9));
}

TEST_CASE("recurrence: order 1 and decay 1 are the plain cell", "[ops]") {
  Device device;
  Block some = block({.cell = RecurrentCell::rnn}, 3, 7, 9);
  some.preceding = counts(3, 7, 4, {2, 6});
  const Results plain = device.run({.cell = RecurrentCell::rnn}, some);
  const Results first = device.run({.cell = RecurrentCell::hornn_fofe, .order = 1, .decay = 1}, some);
  CHECK(worst(first.outputs, plain.outputs) < 1e-14);
  CHECK(worst(first.dinputs, plain.dinputs) < 1e-13);
  CHECK(worst(first.dweight, plain.dweight) < 1e-13);
}

TEST_CASE("recurrence: two chunks make what one does", "[ops]") {
  Device device;
  const RecurrenceOptions options = GENERATE(kLayers[0], kLayers[1], kLayers[2], kLayers[3]);
  // The first chunk may be shorter than the history that the second one reads.
  const std::int64_t cut = GENERATE(1, 2, 5, 8);
  CAPTURE(name_of(options.cell), cut);
  Block whole = block(options, 2, 9, 5);
  // A sequence ends before, after, or exactly at the cut.
  whole.preceding = counts(2, 9, 100, {cut == 8 ? 8 : 4});
  const Results one = device.run(options, whole);
  const Results first = device.run(options, piece(whole, 0, cut, whole.hidden, whole.cells));
  // More rows than the second chunk reads, those of the start in front.
  const std::int64_t before = whole.hidden.axis(1);
  Array64 hidden = reference::zeros({2, before + cut, 5});
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t r = 0; r < before + cut; ++r)
      for (std::int64_t i = 0; i < 5; ++i)
        hidden.at(b, r, i) = r < before ? whole.hidden.at(b, r, i) : first.outputs.at(b, r - before, i);
  const Results second = device.run(options, piece(whole, cut, 9, hidden, first.cells));
  CHECK(worst(first.outputs, part(one.outputs, 0, 2, 0, cut)) < 1e-14);
  CHECK(worst(second.outputs, part(one.outputs, 0, 2, cut, 9)) < 1e-14);
  // No gradient crosses the cut: those of the inputs behind it are the same, those of the inputs ahead of it are not,
  // but where the cut is the end of the sequence.
  CHECK(worst(second.dinputs, part(one.dinputs, 0, 2, cut, 9)) < 1e-13);
  const double lost = worst(first.dinputs, part(one.dinputs, 0, 2, 0, cut));
  if (cut == 8)
    CHECK(lost < 1e-13);
  else
    CHECK(lost > 1e-4);
}

TEST_CASE("recurrence: two sequences in one stream are two streams of one", "[ops]") {
  Device device;
  const RecurrenceOptions options = GENERATE(kLayers[0], kLayers[1], kLayers[2], kLayers[3]);
  const std::int64_t steps = 6, reset = GENERATE(0, 1, 3, 5);
  CAPTURE(name_of(options.cell), reset);
  Block whole = block(options, 2, steps, 7);
  whole.preceding = counts(2, steps, 50, {reset});
  const Results both = device.run(options, whole);
  Array64 dweight = reference::zeros(both.dweight.shape);
  const auto compare = [&](std::int64_t begin, std::int64_t end, const Block& alone) {
    const Results results = device.run(options, alone);
    CHECK(worst(part(both.outputs, 0, 2, begin, end), results.outputs) < 1e-14);
    CHECK(worst(part(both.dinputs, 0, 2, begin, end), results.dinputs) < 1e-13);
    for (std::size_t i = 0; i < dweight.data.size(); ++i) dweight.data[i] += results.dweight.data[i];
  };
  if (reset > 0) compare(0, reset, piece(whole, 0, reset, whole.hidden, whole.cells));
  compare(reset, steps, piece(whole, reset, steps, {}, {}));
  CHECK(worst(both.dweight, dweight) < 1e-12);
}

TEST_CASE("recurrence: streams do not see each other", "[ops]") {
  Device device;
  const RecurrenceOptions options = GENERATE(kLayers[0], kLayers[1], kLayers[2], kLayers[3]);
  CAPTURE(name_of(options.cell));
  Block whole = block(options, 4, 5, 6);
  whole.preceding = counts(4, 5, 50, {2});
  const Results before = device.run(options, whole, DType::f32);
  Block other = whole;
  const double nan = std::nan("");
  for (std::int64_t t = 0; t < 5; ++t)
    for (std::int64_t i = 0; i < other.inputs.axis(2); ++i) other.inputs.at(1, t, i) = nan;
  for (std::int64_t i = 0; i < 6; ++i) other.hidden.at(3, options.history() - 1, i) = nan;
  const Results after = device.run(options, other, DType::f32);
  for (const std::int64_t stream : {0, 2}) {
    CHECK(part(after.outputs, stream, 1, 0, 5).data == part(before.outputs, stream, 1, 0, 5).data);
    CHECK(part(after.dinputs, stream, 1, 0, 5).data == part(before.dinputs, stream, 1, 0, 5).data);
  }
  // A sequence that begins at step 2 has forgotten what came before it, whatever it was.
  CHECK(std::isnan(after.outputs.at(3, 1, 0)));
  CHECK(part(after.outputs, 3, 1, 2, 5).data == part(before.outputs, 3, 1, 2, 5).data);
  CHECK(part(after.dinputs, 3, 1, 2, 5).data == part(before.dinputs, 3, 1, 2, 5).data);
}

TEST_CASE("recurrence: the same bits for any number of threads", "[ops]") {
  Device device(*available_backends().front());
  const RecurrenceOptions options = GENERATE(kLayers[0], kLayers[1], kLayers[2], kLayers[3]);
  const std::int64_t steps = GENERATE(1, 6);
  CAPTURE(name_of(options.cell), steps);
  const Block some = block(options, 101, steps, 150);
  const int threads = omp_get_max_threads();
  std::vector<Results> runs;
  for (const int count : {1, 2, 8}) {
    omp_set_num_threads(count);
    runs.push_back(device.run(options, some, DType::f32));
  }
  omp_set_num_threads(threads);
  for (const Results& run : runs) {
    CHECK(run.outputs.data == runs[0].outputs.data);
    CHECK(run.cells.data == runs[0].cells.data);
    CHECK(run.dinputs.data == runs[0].dinputs.data);
    CHECK(run.dweight.data == runs[0].dweight.data);
  }
}

TEST_CASE("recurrence: inputs that others hold are not overwritten", "[ops]") {
  Device device;
  const RecurrenceOptions options = GENERATE(kLayers[0], kLayers[1], kLayers[2], kLayers[3]);
  const Block some = block(options, 2, 3, 4);
  Tape tape(device.step);
  const Tensor preceding = device.upload(some.preceding, DType::i32, true);
  const Variable weight = tape.leaf(device.upload(some.weight, DType::f64));
  const Variable held = tape.leaf(device.upload(some.inputs, DType::f64));
  const Recurrence copied = recurrence(held, weight, {}, preceding, options);
  CHECK(to_host(device.backend, held.value()).data == some.inputs.data);
  Variable moved = scale(held, 1);
  const Recurrence consumed = recurrence(std::move(moved), weight, {}, preceding, options);
  CHECK(to_host(device.backend, copied.outputs.value()).data == to_host(device.backend, consumed.outputs.value()).data);
}

TEST_CASE("recurrence: products of rounded operands", "[ops][gemm]") {
  const RecurrenceOptions options = GENERATE(kLayers[0], kLayers[1], kLayers[2], kLayers[3]);
  const std::int64_t steps = GENERATE(1, 4);
  CAPTURE(name_of(options.cell), steps);
  Block some = block(options, 19, steps, 37);
  some.preceding = counts(19, steps, 50, {3});
  Device exact(*available_backends().front());
  const Results plain = exact.run(options, some, DType::f32);
  std::vector<Results> rounded;
  for (const auto& backend : available_backends()) {
    Device device(*backend);
    device.step.set_products(ProductPrecision::bf16);
    rounded.push_back(device.run(options, some, DType::f32));
    const Results& last = rounded.back();
    // Sums have other orders. One that comes out beside a tie would be rounded to another number by the next product:
    // of these numbers none does.
    CHECK(worst(last.outputs, rounded[0].outputs) < 2e-6);
    CHECK(worst(last.dinputs, rounded[0].dinputs) < 2e-5);
    CHECK(worst(last.dweight, rounded[0].dweight) < 2e-4);
    CHECK(worst(last.outputs, plain.outputs) > 1e-3);
    CHECK(worst(last.dinputs, plain.dinputs) > 1e-3);
    CHECK(worst(last.outputs, plain.outputs) < 0.1);
  }
}

TEST_CASE("recurrence: bf16 is refused", "[ops]") {
  Device device(*available_backends().front());
  Tape tape(device.step);
  const Tensor preceding = device.upload(counts(1, 2, 0), DType::i32, true);
  const Variable inputs = tape.constant(device.step.empty({1, 2, 4}, DType::bf16));
  const Variable weight = tape.constant(device.step.empty({4, 1}, DType::bf16));
  CHECK_THROWS_WITH(
      recurrence(inputs, weight, {}, preceding, {.cell = RecurrentCell::lstm}),
      ContainsSubstring("inputs must be f32 or f64, got bf16") && ContainsSubstring("ProductResult::summed"));
}

}  // namespace
}  // namespace engram::harness::recurrence_cells_test
