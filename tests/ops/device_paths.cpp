/// Kernels for cards take other paths for rows that divide into packs of 16 bytes, for long rows, for memory that is
/// not aligned, and for sums of several chunks. Every device against the CPU at shapes and places that take each of
/// them; in bf16, which the CPU does not have, against the CPU's f32 of the same numbers.

#include <algorithm>
#include <functional>

#include "core/error.hpp"
#include "core/kernels/add.hpp"
#include "core/kernels/batch_norm.hpp"
#include "core/kernels/bias.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/cross_entropy.hpp"
#include "core/kernels/dropout.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/gather_rows.hpp"
#include "core/kernels/layer_norm.hpp"
#include "core/kernels/optimizer.hpp"
#include "core/kernels/pointwise.hpp"
#include "core/kernels/reduce.hpp"
#include "core/kernels/relu_dropout.hpp"
#include "core/kernels/rms_norm.hpp"
#include "core/kernels/softmax.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness::device_paths_test {
namespace {

struct Setting {
  DType dtype = DType::f32;
  std::int64_t shift = 0;       ///< elements from an aligned address to the first element of a tensor
  DType rounding = DType::f32;  ///< of the inputs' numbers
};

/// One device, and tensors in a setting.
struct Place {
  Backend& backend;
  DType dtype, rounding;
  std::int64_t shift;
  GuardedAllocator memory{backend};
  Step step{backend, memory, run_seed()};
  std::vector<Tensor> results;
  int inputs = 0;

  Place(Backend& on, const Setting& setting)
      : backend(on), dtype(setting.dtype), rounding(setting.rounding), shift(setting.shift) {
    step.begin(run_scalars());
  }

  Tensor place(const Shape& shape, const Array64& whole, const Input& input) {
    return to_device(backend, memory, whole, input, dtype).rows(shift, shift + shape.count()).view(shape);
  }
  /// Numbers that are a function of the place in the list of inputs.
  Tensor input(const Shape& shape, Role role = Role::activation) {
    std::vector<Input> one{normal({shape.count() + shift})};
    one[0].role = role;
    Array64 whole = input_values(text("input ", inputs++), one, rounding)[0];
    std::rotate(whole.data.begin(), whole.data.end() - shift, whole.data.end());  // the same with and without shift
    return place(shape, whole, one[0]);
  }
  Tensor ids(std::int64_t count, std::int64_t below) {
    const std::vector<Input> one{index({count}, below)};
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<double>(i * 7 % 5 * i % below));
    return to_device(backend, memory, Array64{{count}, numbers}, one[0], dtype);
  }
  /// Of a parameter, or statistics: f32 beside bf16.
  Tensor vector(const Shape& shape) { return input(shape, Role::vector); }
  /// Also an input where a kernel adds.
  Tensor& output(const Shape& shape) { return results.emplace_back(input(shape)); }
  Tensor& vector_output(const Shape& shape) { return results.emplace_back(vector(shape)); }
};

using Body = std::function<void(Place&)>;

std::vector<Array64> run(Backend& backend, const Setting& setting, const Body& body) {
  std::vector<Array64> values;
  Place place(backend, setting);
  place.results.reserve(16);  // bodies hold references
  body(place);
  for (const Tensor& result : place.results) values.push_back(to_host(backend, result));
  place.results.clear();
  for (const std::string& fault : place.memory.faults()) FAIL_CHECK(fault);
  return values;
}

/// Largest distances of a device's numbers from the CPU's.
struct Tolerances {
  double f32 = 2e-6;
  double f64 = 1e-13;
  double bf16 = 0;  ///< 0: no bf16 form
};

/// On every device, f32, f64 and bf16, aligned and not: the CPU's numbers.
void same_on_every_device(const Body& body, const Tolerances& tolerances = {}) {
  for (const auto& [dtype, tolerance] : {std::pair{DType::f32, tolerances.f32}, std::pair{DType::f64, tolerances.f64},
                                         std::pair{DType::bf16, tolerances.bf16}})
    for (const std::int64_t shift : {0, 1}) {
      const bool rounded = dtype == DType::bf16;
      if (tolerance == 0) continue;
      const Setting truth{rounded ? DType::f32 : dtype, shift, rounded ? DType::bf16 : DType::f32};
      const Backend& cpu = *available_backends().front();
      const std::vector<Array64> wanted = run(*available_backends().front(), truth, body);
      CHECK(wanted.size() > 0);
      for (const std::string& fault : compare_norms("output", wanted, wanted, 0, 0)) FAIL_CHECK(fault);  // no NaN
      for (const auto& backend : available_backends()) {
        if (rounded ? !backend->stores_bf16() : backend.get() == &cpu) continue;
        INFO(text(backend->device(), ", ", dtype, ", shift ", shift));
        const std::vector<Array64> got = run(*backend, {dtype, shift, truth.rounding}, body);
        for (const std::string& fault : compare_norms("output", got, wanted, tolerance, 0.1)) FAIL_CHECK(fault);
      }
    }
}

const std::vector<std::int64_t> kRowLengths{1, 8, 130, 1024, 1032, 2051};

TEST_CASE("device paths: element-wise kernels", "[ops]") {
  for (const std::int64_t count : {1, 3, 4, 5, 1023, 1024, 5000})
    same_on_every_device(
        [count](Place& p) {
          for (const Write write : {Write::set, Write::add}) {
            kernels::accumulate(p.step, p.input({count}), 0.7, {p.vector_output({count}), write});
            kernels::accumulate(p.step, p.input({count}), 0.7, {p.output({count}), write});
            const Tensor x = p.input({count}), y = p.input({count}), dy = p.input({count});
            kernels::pointwise_backward<Gelu>(p.step, x, y, dy, {p.output({count}), write});
            kernels::sum_backward(p.step, p.vector({1}), 0.3, {p.output({count}), write});
          }
          kernels::add(p.step, p.input({count}), p.input({count}), p.output({count}));
          kernels::fill(p.step, p.output({count}), 0.1);
          kernels::pointwise_forward<Tanh>(p.step, p.input({count}), p.output({count}));
          kernels::clamp(p.step, p.vector_output({count}), -0.5, 0.5);
        },
        {.bf16 = 2 * kRounding});
}

TEST_CASE("device paths: dropout keeps the same elements", "[ops]") {
  for (const std::int64_t count : {1, 7, 8, 9, 2047, 2048, 2049, 5000})
    same_on_every_device(
        [count](Place& p) {
          for (const Write write : {Write::set, Write::add})
            kernels::dropout(p.step, p.input({count}), p.step.next_random(), DropoutRule(0.4),
                             {p.output({count}), write});
        },
        {.f32 = 1e-7, .f64 = 1e-15, .bf16 = 2 * kRounding});
}

TEST_CASE("device paths: variational and word dropout keep the same elements", "[ops]") {
  for (const std::int64_t n : {1, 4, 7, 8, 24, 1031, 2048})
    same_on_every_device(
        [n](Place& p) {
          for (const Write write : {Write::set, Write::add}) {
            kernels::variational_dropout(p.step, p.input({3, 5, n}), p.step.next_random(), DropoutRule(0.4),
                                         {p.output({3, 5, n}), write});
            kernels::word_dropout(p.step, p.input({6, n}), p.ids(6, 9), p.step.next_random(), DropoutRule(0.4),
                                  {p.output({6, n}), write});
          }
        },
        {.f32 = 1e-7, .f64 = 1e-15, .bf16 = 2 * kRounding});
}

TEST_CASE("device paths: conversions and runs", "[ops]") {
  for (const std::int64_t length : {1, 4, 6, 8, 300})
    same_on_every_device(
        [length](Place& p) {
          for (const DType other : {DType::f32, DType::f64, DType::bf16}) {
            Tensor converted = p.step.empty({length}, other);
            kernels::convert(p.step, p.input({length}), converted);
            p.results.push_back(converted);
            kernels::convert(p.step, converted, p.output({length}));
          }
          for (const std::int64_t gap : {0, 3, 8})
            kernels::copy_runs(p.step, p.input({5 * (length + gap)}), {gap, length + gap},
                               {p.output({6 * (length + 8)}), gap == 0 ? Write::set : Write::add}, {8, length + 8}, 5,
                               length);
        },
        {.bf16 = kRounding});
}

TEST_CASE("device paths: sums over rows and over everything", "[ops]") {
  for (const std::int64_t rows : {1, 33, 2100})  // the last in longer chunks than the others
    for (const std::int64_t n : {1, 33, 264}) {
      if (rows * n > 110000) continue;
      same_on_every_device(
          [rows, n](Place& p) {
            kernels::bias_forward(p.step, p.vector({n}), p.output({rows, n}));
            for (const Write write : {Write::set, Write::add})
              kernels::bias_backward(p.step, p.input({rows, n}), {p.vector_output({n}), write});
            kernels::sum_forward(p.step, p.input({rows, n}), 0.01, p.vector_output({1}));
          },
          {.f32 = 5e-6, .f64 = 1e-12, .bf16 = kRounding});
    }
}

TEST_CASE("device paths: bias, relu and dropout in one", "[ops]") {
  for (const std::int64_t n : kRowLengths)
    same_on_every_device(
        [n](Place& p) {
          const Shape shape{n > 1000 ? 3 : 6, n};
          Tensor y = p.output(shape), dx = p.output(shape);
          kernels::relu_dropout_forward(p.step, p.input(shape), p.vector({n}), p.step.next_random(), DropoutRule(0.3),
                                        y);
          kernels::relu_dropout_backward(p.step, y, p.input(shape), DropoutRule(0.3), dx, {});
          for (const Write write : {Write::set, Write::add})
            kernels::relu_dropout_backward(p.step, y, p.input(shape), DropoutRule(0.3), dx,
                                           {p.vector_output({n}), write});
        },
        {.f32 = 5e-6, .f64 = 1e-12, .bf16 = kRounding});
}

TEST_CASE("device paths: softmax and layer norm", "[ops]") {
  for (const std::int64_t n : kRowLengths)
    same_on_every_device(
        [n](Place& p) {
          const Shape shape{n > 1000 ? 3 : 6, n};
          kernels::softmax_forward(p.step, p.input(shape), p.output(shape));
          Tensor none, sum = p.output(shape), mean = p.vector_output({shape[0]});
          Tensor reciprocal = p.vector_output({shape[0]});
          const Tensor gain = p.vector({n}), bias = p.vector({n}), dy = p.input(shape);
          kernels::layer_norm_forward(p.step, p.input(shape), p.input(shape), gain, bias, 1e-5, sum, p.output(shape),
                                      mean, reciprocal);
          for (const Write write : {Write::set, Write::add}) {
            kernels::softmax_backward(p.step, p.input(shape), p.input(shape), {p.output(shape), write});
            kernels::layer_norm_backward(p.step, sum, gain, mean, reciprocal, dy, p.input(shape),
                                         {p.output(shape), write}, {p.vector_output({n}), write},
                                         {p.vector_output({n}), write});
            kernels::layer_norm_backward(p.step, sum, gain, mean, reciprocal, dy, none, {none, write}, {none, write},
                                         {p.vector_output({n}), write});
          }
        },
        {.f32 = 1e-5, .f64 = 1e-12, .bf16 = 3 * kRounding});
}

TEST_CASE("device paths: layer norm of many rows", "[ops]") {
  // In chunks of 8 rows and of 9, the last ones shorter; not in packs.
  for (const auto& [rows, n] : {std::pair<std::int64_t, std::int64_t>{2050, 40}, {6147, 16}, {2050, 9}})
    same_on_every_device(
        [rows = rows, n = n](Place& p) {
          const Shape shape{rows, n};
          const Tensor gain = p.vector({n}), mean = p.vector({rows}), reciprocal = p.vector({rows});
          for (const Write write : {Write::set, Write::add})
            kernels::layer_norm_backward(p.step, p.input(shape), gain, mean, reciprocal, p.input(shape), p.input(shape),
                                         {p.output(shape), write}, {p.vector_output({n}), write},
                                         {p.vector_output({n}), write});
        },
        {.f32 = 1e-4, .f64 = 1e-12, .bf16 = 4 * kRounding});
}

TEST_CASE("device paths: batch norm, masked and not", "[ops]") {
  for (const std::int64_t rows : {7, 66, 2100})  // the last in longer chunks than the others
    for (const std::int64_t n : {3, 33, 264}) {  // of one sum alone 2100 terms may leave next to nothing
      if (rows * n > 110000) continue;
      for (const bool masked : {false, true})
        same_on_every_device(
            [rows, n, masked](Place& p) {
              const Shape shape{rows, n};
              Tensor none, mask;
              std::int64_t count = rows;
              if (masked) {
                mask = p.ids(rows, 5);
                for (const double included : to_host(p.backend, mask).data) count -= included == 0 ? 1 : 0;
              }
              const Tensor x = p.input(shape), gain = p.vector({n}), bias = p.vector({n}), dy = p.input(shape);
              Tensor mean = p.vector_output({n}), reciprocal = p.vector_output({n});
              kernels::batch_norm_training(p.step, x, mask, count, gain, bias, 1e-3, 0.1, p.vector_output({n}),
                                           p.vector_output({n}), p.output(shape), mean, reciprocal);
              kernels::batch_norm_inference(p.step, x, mask, gain, bias, mean, reciprocal, 1e-3, p.output(shape));
              for (const Write write : {Write::set, Write::add}) {
                kernels::batch_norm_backward(p.step, x, mask, count, gain, mean, reciprocal, dy,
                                             {p.output(shape), write}, {p.vector_output({n}), write}, {none, write});
                kernels::batch_norm_backward(p.step, x, mask, count, gain, mean, reciprocal, dy, {none, write},
                                             {p.vector_output({n}), write}, {p.vector_output({n}), write});
              }
            },
            {.f32 = 1e-5, .f64 = 1e-12, .bf16 = 3 * kRounding});
    }
}

TEST_CASE("device paths: rms norm", "[ops]") {
  for (const std::int64_t n : kRowLengths)
    same_on_every_device(
        [n](Place& p) {
          const Shape shape{n > 1000 ? 3 : 6, n};
          Tensor none, reciprocal = p.vector_output({shape[0]});
          const Tensor x = p.input(shape), gain = p.vector({n}), dy = p.input(shape);
          for (const Tensor& factor : {gain, none}) {
            kernels::rms_norm_forward(p.step, x, factor, static_cast<double>(n), 1e-5, p.output(shape), reciprocal);
            for (const Write write : {Write::set, Write::add})
              kernels::rms_norm_backward(p.step, x, factor, static_cast<double>(n), reciprocal, dy,
                                         {p.output(shape), write}, {p.vector_output({n}), write});
          }
        },
        {.f32 = 1e-5, .f64 = 1e-12, .bf16 = 3 * kRounding});
}

TEST_CASE("device paths: cross entropy", "[ops]") {
  for (const std::int64_t n : kRowLengths)
    for (const bool gradient : {false, true})
      same_on_every_device([n, gradient](Place& p) {
        Tensor logits = p.input({7, n});
        kernels::cross_entropy(p.step, logits, p.ids(7, n), p.input({7}), gradient, p.output({7}), p.output({1}));
        if (gradient) p.results.push_back(logits);
      });
}

TEST_CASE("device paths: rows by index", "[ops]") {
  for (const std::int64_t n : {1, 30, 132, 600})
    for (const std::int64_t rows : {1, 33, 100})
      same_on_every_device(
          [n, rows](Place& p) {
            const Tensor ids = p.ids(rows, 6);
            kernels::gather_rows(p.step, p.input({6, n}), ids, 1.5, p.output({rows, n}));
            for (const Write write : {Write::set, Write::add})
              kernels::scatter_rows(p.step, p.input({rows, n}), ids, 1.5, {p.vector_output({6, n}), write});
          },
          {.bf16 = kRounding});
}

TEST_CASE("device paths: update rules of many segments", "[ops]") {
  SegmentTable segments;
  std::int64_t end = 0;
  for (std::int64_t s = 0; s < 150; ++s) {  // several batches of segments; lengths from 0, one of several chunks
    const std::int64_t count = s == 70 ? 9001 : s % 7 * 5;
    segments.push_back({end, count});
    end += (count + 3) / 4 * 4 + (s == 100 ? 1 : 0);  // from there on not aligned
  }
  for (const bool aligned : {true, false}) {
    const SegmentTable table(segments.begin(), aligned ? segments.begin() + 100 : segments.end());
    same_on_every_device([&](Place& p) {
      const Tensor gradient = p.input({end}), one = p.step.empty({1}, DType::f64);
      Tensor scale = one, squares = p.step.empty({static_cast<std::int64_t>(table.size())}, DType::f64);
      Tensor chunks = p.step.empty({chunks_of(table)}, DType::f64);
      kernels::segment_chunk_squares(p.step, gradient, table, chunks);
      kernels::add_segment_chunks(p.step, chunks, table, squares);
      kernels::clip_scale(p.step, squares, 0.5, scale);
      p.results.push_back(squares);
      p.results.push_back(scale);
      p.step.begin({.step = 3, .learning_rate = 0.01});
      Tensor &parameter = p.output({end}), &first = p.output({end}), &second = p.output({end});
      kernels::fill(p.step, second, 0.2);
      kernels::adagrad(p.step, gradient, table, squares, {.clip = 2}, parameter, second);
      kernels::adagrad(p.step, gradient, table, squares, {.clip = 2, .clip_gradient = true}, parameter, second);
      kernels::adam(p.step, gradient, scale, {.weight_decay = 0.1}, parameter, first, second);
      kernels::adam(p.step, gradient, scale, {.epsilon_at = EpsilonAt::uncorrected}, parameter, first, second);
      kernels::sgd(p.step, gradient, scale, {.momentum = 0.9}, parameter, first);
      kernels::sgd(p.step, gradient, scale, {.momentum = 0.9, .nesterov = true}, parameter, first);
    });
  }
}

}  // namespace
}  // namespace engram::harness::device_paths_test
