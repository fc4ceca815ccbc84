/// Update rules against the numbers of [all-attention 5.1, 5.2, 12] (T9) and the plain definitions.

#include "core/kernels/optimizer.hpp"

#include <omp.h>

#include <cmath>
#include <limits>

#include "autograd/initializer.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/reference/optimizers.hpp"

namespace engram::harness::optimizer_test {
namespace {

constexpr double kRate = 0.07;  // no float
const StepScalars kScalars{.step = 6, .learning_rate = kRate};

struct Fixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};

  Fixture() { step.begin(kScalars); }

  Tensor tensor(const std::vector<double>& numbers, DType dtype = DType::f64) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return to_device(backend, memory, Array64{{count}, numbers}, values({count}, numbers), dtype);
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }

  Tensor norms(const Tensor& gradient, const SegmentTable& segments) {
    Tensor squared = step.empty({static_cast<std::int64_t>(segments.size())}, DType::f64);
    Tensor chunks = step.empty({chunks_of(segments)}, DType::f64);
    kernels::segment_chunk_squares(step, gradient, segments, chunks);
    kernels::add_segment_chunks(step, chunks, segments, squared);
    return squared;
  }
  void adagrad(const Tensor& gradient, const SegmentTable& segments, const kernels::AdagradOptions& options,
               Tensor& parameter, Tensor& accumulator) {
    kernels::adagrad(step, gradient, segments, norms(gradient, segments), options, parameter, accumulator);
  }
};

std::vector<double> random_numbers(std::size_t count, const char* name) {
  std::vector<double> numbers(count);
  Initializer{Initializer::Kind::normal, 1}.fill(numbers.data(), DType::f64, static_cast<std::int64_t>(count), 3, name);
  return numbers;
}

std::vector<double> part(const std::vector<double>& whole, const Segment& segment) {
  return {whole.begin() + segment.offset, whole.begin() + segment.offset + segment.count};
}

void check_close(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(got.size() == wanted.size());
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, std::abs(got[i] - wanted[i]) / std::max(1.0, std::abs(wanted[i])));
  CHECK(worst <= tolerance);
}

// Segments as a store lays them out, with gaps; one is longer than two chunks, one is a single number, one is empty.
const SegmentTable kSegments{{0, 5}, {64, 1}, {128, 33001}, {33152, 0}, {33216, 100}};
constexpr std::size_t kCount = 33344;

TEST_CASE_METHOD(Fixture, "T9: Adagrad shrinks the step, not the gradient", "[ops]") {
  step.begin({.learning_rate = 0.1});
  const SegmentTable whole{{0, 2}};
  Tensor parameter = tensor({1, 1}), accumulator = tensor({0, 0});
  adagrad(tensor({3, 4}), whole, {.clip = 0.03}, parameter, accumulator);
  check_close(host(parameter), {0.9994, 0.9994}, 1e-13);
  CHECK(host(accumulator) == std::vector<double>{9, 16});
  adagrad(tensor({0.003, 0.004}), whole, {.clip = 0.03}, parameter, accumulator);
  check_close(host(parameter), {0.9993, 0.9993}, 1e-9);
  check_close(host(accumulator), {9.000009, 16.000016}, 1e-14);

  parameter = tensor({1, 1}), accumulator = tensor({0, 0});
  adagrad(tensor({3, 4}), whole, {.clip = 0.03, .clip_gradient = true}, parameter, accumulator);
  check_close(host(parameter), {0.9, 0.9}, 1e-9);
  check_close(host(accumulator), {0.018 * 0.018, 0.024 * 0.024}, 1e-11);
}

TEST_CASE_METHOD(Fixture, "T9: tensors in one block are updated as if they were separate", "[ops]") {
  step.begin({.learning_rate = 0.1});
  const std::vector<double> gradients{3, 4, 0.003, 0.004};  // the first tensor is clipped, the second is not
  Tensor together = tensor({1, 1, 1, 1}), sums = tensor({0, 0, 0, 0});
  adagrad(tensor(gradients), {{0, 2}, {2, 2}}, {.clip = 0.03}, together, sums);
  Tensor first = tensor({1, 1}), first_sums = tensor({0, 0});
  adagrad(tensor({3, 4}), {{0, 2}}, {.clip = 0.03}, first, first_sums);
  Tensor second = tensor({1, 1}), second_sums = tensor({0, 0});
  adagrad(tensor({0.003, 0.004}), {{0, 2}}, {.clip = 0.03}, second, second_sums);
  CHECK(part(host(together), {0, 2}) == host(first));
  CHECK(part(host(together), {2, 2}) == host(second));
  CHECK(host(second)[0] == Approx(0.9).epsilon(1e-7));
}

TEST_CASE_METHOD(Fixture, "segment norms are the sums of squares, with one thread and with two", "[ops]") {
  const std::vector<double> numbers = random_numbers(kCount, "norms");
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor gradient = tensor(numbers, dtype);
    const std::vector<double> stored = host(gradient);
    std::vector<double> wanted;
    for (const Segment& segment : kSegments) {
      double sum = 0;
      for (const double x : part(stored, segment)) sum += x * x;
      wanted.push_back(sum);
    }
    const std::vector<double> got = host(norms(gradient, kSegments));
    check_close(got, wanted, 1e-13);
    CHECK(got[3] == 0);
    const int before = omp_get_max_threads();
    omp_set_num_threads(before == 1 ? 2 : 1);
    CHECK(host(norms(gradient, kSegments)) == got);
    omp_set_num_threads(before);
  }
}

TEST_CASE_METHOD(Fixture, "Adagrad over many segments equals the definition per tensor; gaps stay as they are",
                 "[ops]") {
  const std::vector<double> values = random_numbers(kCount, "values"), gradients = random_numbers(kCount, "gradients");
  std::vector<double> sums = random_numbers(kCount, "sums");
  for (double& sum : sums) sum *= sum;
  for (const bool clip_gradient : {false, true})
    for (const double clip : {0.0, 0.03, 20.0})  // 20: only the long tensor is clipped
      for (const DType dtype : {DType::f64, DType::f32}) {
        INFO("clip " << clip << (clip_gradient ? " of the gradient, " : ", ") << name_of(dtype));
        Tensor parameter = tensor(values, dtype), accumulator = tensor(sums, dtype);
        const std::vector<double> old_values = host(parameter), old_sums = host(accumulator);
        const Tensor gradient = tensor(gradients, dtype);
        adagrad(gradient, kSegments, {.clip = clip, .clip_gradient = clip_gradient}, parameter, accumulator);
        std::vector<double> wanted_values = old_values, wanted_sums = old_sums;
        for (const Segment& segment : kSegments) {
          Array64 value{{segment.count}, part(old_values, segment)}, sum{{segment.count}, part(old_sums, segment)};
          reference::adagrad(value, Array64{{segment.count}, part(host(gradient), segment)}, sum,
                             {kRate, clip, clip_gradient ? reference::Clip::gradient : reference::Clip::rate});
          std::copy(value.data.begin(), value.data.end(), wanted_values.begin() + segment.offset);
          std::copy(sum.data.begin(), sum.data.end(), wanted_sums.begin() + segment.offset);
        }
        const double tolerance = dtype == DType::f64 ? 1e-14 : 5e-7;
        check_close(host(parameter), wanted_values, tolerance);
        check_close(host(accumulator), wanted_sums, tolerance);
        for (const std::int64_t gap : {5, 63, 65, 127, 33129, 33200, 33316, 33343}) {
          CHECK(host(parameter)[static_cast<std::size_t>(gap)] == old_values[static_cast<std::size_t>(gap)]);
          CHECK(host(accumulator)[static_cast<std::size_t>(gap)] == old_sums[static_cast<std::size_t>(gap)]);
        }
      }
}

TEST_CASE_METHOD(Fixture, "a zero gradient moves nothing", "[ops]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const std::vector<double> start{1.5, -2, 0};
    Tensor parameter = tensor(start, dtype), first = tensor({0, 0, 0}, dtype), second = tensor({0, 0, 0}, dtype);
    const Tensor gradient = tensor({0, 0, 0}, dtype), one = tensor({1});
    adagrad(gradient, {{0, 3}}, {.clip = 0.03}, parameter, first);
    kernels::adam(step, gradient, one, {}, parameter, first, second);
    kernels::sgd(step, gradient, one, {.momentum = 0.9}, parameter, first);
    CHECK(host(parameter) == start);
    CHECK(host(first) == std::vector<double>{0, 0, 0});
  }
}

TEST_CASE_METHOD(Fixture, "Adam equals its definition, with the clip factor and the step of the scalars", "[ops]") {
  const std::vector<double> gradients = random_numbers(16411, "gradients");
  const bool corrected = GENERATE(true, false);
  const kernels::AdamOptions options{.epsilon = 0.01,
                                     .epsilon_at = corrected ? EpsilonAt::corrected : EpsilonAt::uncorrected};
  for (const DType dtype : {DType::f64, DType::f32}) {
    Tensor parameter = tensor(random_numbers(16411, "values"), dtype);
    Tensor first = tensor(std::vector<double>(16411), dtype), second = tensor(std::vector<double>(16411), dtype);
    Array64 value{{16411}, host(parameter)}, m = reference::zeros({16411}), v = m;
    const Tensor gradient = tensor(gradients, dtype), scale = tensor({0.25});
    Array64 scaled{{16411}, host(gradient)};
    for (double& g : scaled.data) g *= 0.25;
    for (std::uint64_t t = 0; t < 3; ++t) {
      step.begin({.step = t, .learning_rate = kRate});
      kernels::adam(step, gradient, scale, options, parameter, first, second);
      reference::adam(value, scaled, m, v, static_cast<std::int64_t>(t) + 1,
                      {.rate = kRate, .epsilon = options.epsilon, .corrected_root = corrected});
    }
    const double tolerance = dtype == DType::f64 ? 1e-13 : 2e-6;
    check_close(host(parameter), value.data, tolerance);
    check_close(host(first), m.data, tolerance);
    check_close(host(second), v.data, tolerance);
  }
}

TEST_CASE_METHOD(Fixture, "Adam adds epsilon to the corrected root, or to the root as it is", "[ops]") {
  // In the first step, with a gradient as large as epsilon: 1 / (1 + 1), or r / (r + 1) with r = sqrt(1 - beta2).
  const double root = std::sqrt(0.001);
  for (const EpsilonAt at : {EpsilonAt::corrected, EpsilonAt::uncorrected}) {
    step.begin({.learning_rate = kRate});
    Tensor parameter = tensor({2}), first = tensor({0}), second = tensor({0});
    kernels::adam(step, tensor({1e-3}), tensor({1}), {.epsilon = 1e-3, .epsilon_at = at}, parameter, first, second);
    const double moved = at == EpsilonAt::corrected ? 0.5 : root / (root + 1);
    CHECK(host(parameter)[0] == Approx(2 - kRate * moved).epsilon(1e-13));
  }
}

TEST_CASE_METHOD(Fixture, "Adam's weight decay is apart from the moments", "[ops]") {
  Tensor parameter = tensor({2}), first = tensor({0}), second = tensor({0});
  kernels::adam(step, tensor({0}), tensor({1}), {.weight_decay = 0.5}, parameter, first, second);
  CHECK(host(parameter)[0] == Approx(2 - kRate * 0.5 * 2).epsilon(1e-14));
  CHECK(host(first)[0] == 0);
}

TEST_CASE_METHOD(Fixture, "SGD equals its definition", "[ops]") {
  const std::vector<double> gradients = random_numbers(16411, "gradients");
  Tensor parameter = tensor(random_numbers(16411, "values")), velocity = tensor(std::vector<double>(16411));
  Array64 value{{16411}, host(parameter)}, v = reference::zeros({16411}), scaled{{16411}, gradients};
  for (double& g : scaled.data) g *= 0.5;
  for (int t = 0; t < 3; ++t) {
    kernels::sgd(step, tensor(gradients), tensor({0.5}), {.momentum = 0.9}, parameter, velocity);
    reference::sgd(value, scaled, v, kRate, 0.9);
  }
  check_close(host(parameter), value.data, 1e-14);
  check_close(host(velocity), v.data, 1e-14);
}

TEST_CASE_METHOD(Fixture, "Nesterov's momentum equals its definition of two points", "[ops]") {
  const std::vector<double> gradients = random_numbers(16411, "gradients");
  for (const DType dtype : {DType::f64, DType::f32}) {
    Tensor parameter = tensor(random_numbers(16411, "values"), dtype);
    Tensor velocity = tensor(std::vector<double>(16411), dtype);
    const Tensor gradient = tensor(gradients, dtype);
    Array64 value{{16411}, host(parameter)}, point = value, speed = reference::zeros({16411});
    Array64 scaled{{16411}, host(gradient)};
    for (double& g : scaled.data) g *= 0.5;
    for (int t = 0; t < 4; ++t) {
      kernels::sgd(step, gradient, tensor({0.5}), {.momentum = 0.9, .nesterov = true}, parameter, velocity);
      reference::nesterov(value, point, scaled, speed, kRate, 0.9);
    }
    for (double& v : speed.data) v /= -kRate;
    const double tolerance = dtype == DType::f64 ? 1e-13 : 2e-6;
    check_close(host(parameter), value.data, tolerance);
    check_close(host(velocity), speed.data, tolerance);
  }
}

TEST_CASE_METHOD(Fixture, "clip_scale is the factor of the global clip", "[ops]") {
  const auto scale_for = [&](std::vector<double> squares, double limit) {
    Tensor scale = step.empty({1}, DType::f64);
    kernels::clip_scale(step, tensor(squares), limit, scale);
    return host(scale)[0];
  };
  CHECK(scale_for({9, 16}, 1) == Approx(1 / 5.000001).epsilon(1e-15));
  CHECK(scale_for({0.09, 0.16}, 1) == 1);
  CHECK(scale_for({9, 16}, 0) == 1);
  CHECK(scale_for({0}, 1) == 1);
}

TEST_CASE_METHOD(Fixture, "clamp keeps what is inside and does not hide a NaN", "[ops]") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::f32, DType::f64}) {
    Tensor x = tensor({-0.5, 0, 0.25, 1, 1.5, -infinity, infinity, nan}, dtype);
    kernels::clamp(step, x, 0, 1);
    const std::vector<double> got = host(x);
    CHECK(part(got, {0, 7}) == std::vector<double>{0, 0, 0.25, 1, 1, 0, 1});
    CHECK(std::isnan(got[7]));
  }
}

}  // namespace
}  // namespace engram::harness::optimizer_test
