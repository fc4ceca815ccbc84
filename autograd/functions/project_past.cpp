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
    const Target dweight = pass.input_grad(0);
    if (!dweight) return;
    // A sum over no streams, of which the kernels would write nothing.
    if (cache.shape()[0] == 0) return kernels::clear_if_set(step, dweight);
    kernels::project_past_backward(step, cache, windows, pass.output_grad(), dweight);
  }
};

}  // namespace

Variable project_past(const Tensor& cache, const Variable& weight, const HeadWindows& windows) {
  if (cache.shape().rank() != 3 || weight.shape().rank() != 2 || cache.shape()[2] != weight.shape()[1])
    throw ShapeError(text("project_past: cache must be [B, C, n] and weight [heads D, n], got ", cache.shape(), " and ",
                          weight.shape()));
  if (windows.heads() == 0 || weight.shape()[0] % windows.heads() != 0)
    throw ShapeError(text("project_past: the rows of the weight must divide evenly among the heads, got ",
                          weight.shape(), " and ", windows.heads(), " heads"));
  check_dtype("project_past", "cache", cache, weight.dtype());
  check_same_device("project_past", cache, weight.value());
  Step& step = weight.tape().step();
  Tensor y = step.empty({cache.shape()[0] * windows.total, weight.shape()[0] / windows.heads()}, weight.dtype());
  kernels::project_past_forward(step, cache, weight.value(), windows, y);
  return weight.tape().record(ProjectPast{cache, windows}, {weight}, std::move(y));
}

}  // namespace engram
