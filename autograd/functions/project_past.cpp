#include "autograd/functions/project_past.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/past.hpp"

namespace engram {
namespace {

struct ProjectPast final : Node {
  Tensor cache;  // [B, C, n]
  HeadWindows windows;

  ProjectPast(Tensor states, HeadWindows reach) : cache(std::move(states)), windows(std::move(reach)) {}
  std::string_view name() const override { return "project_past"; }
  std::vector<Saved> saved() const override { return {{"cache", cache}}; }
  void backward(Step& step, Backward& pass) override {
    // One that no loss depends on adds nothing to its weight's gradient.
    const auto gradient = [&](int of) { return pass.has_output_grad(of) ? pass.output_grad(of) : Tensor(); };
    const Tensor dkeys = gradient(0), dvalues = gradient(1);
    const Target dkey_weight = dkeys ? pass.separate_grad(0) : Target(),
                 dvalue_weight = dvalues ? pass.separate_grad(1) : Target();
    if (!dkey_weight && !dvalue_weight) return;
    if (cache.shape()[0] == 0) {  // a sum over no streams, of which the kernels would write nothing
      for (const Target* target : {&dkey_weight, &dvalue_weight})
        if (*target) kernels::clear_if_set(step, *target);
      return;
    }
    kernels::project_past_backward(step, cache, windows, dkeys, dvalues, dkey_weight, dvalue_weight);
  }
};

}  // namespace

PastProjections project_past(const Tensor& cache, const Variable& key_weight, const Variable& value_weight,
                             const HeadWindows& windows) {
  if (cache.shape().rank() != 3 || key_weight.shape().rank() != 2 || cache.shape()[2] != key_weight.shape()[1])
    throw ShapeError(text("project_past: cache must be [B, C, n] and weights [heads D, n], got ", cache.shape(),
                          " and ", key_weight.shape()));
  check_shape("project_past", "value weight", value_weight.value(), key_weight.shape());
  if (windows.heads() == 0 || key_weight.shape()[0] % windows.heads() != 0)
    throw ShapeError(text("project_past: the rows of the weights must divide evenly among the heads, got ",
                          key_weight.shape(), " and ", windows.heads(), " heads"));
  check_dtype("project_past", "cache", cache, key_weight.dtype());
  check_dtype("project_past", "value weight", value_weight.value(), key_weight.dtype());
  check_same_device("project_past", cache, key_weight.value());
  check_same_device("project_past", cache, value_weight.value());
  Tape& tape = key_weight.tape();
  Step& step = tape.step();
  const Shape packed{cache.shape()[0] * windows.total, key_weight.shape()[0] / windows.heads()};
  Tensor keys = step.empty(packed, key_weight.dtype()), values = step.empty(packed, key_weight.dtype());
  kernels::project_past_forward(step, cache, key_weight.value(), value_weight.value(), windows, keys, values);
  auto [of_keys, of_values] = tape.record_outputs(ProjectPast{cache, windows}, {key_weight, value_weight},
                                                  std::array{std::move(keys), std::move(values)});
  return {std::move(of_keys), std::move(of_values)};
}

}  // namespace engram
