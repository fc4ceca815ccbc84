#include "nn/layers/rms_norm.hpp"

#include "autograd/functions/rms_norm.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/init.hpp"

namespace engram {

RmsNorm::RmsNorm(std::int64_t width, double epsilon) : gain_({width}, init::ones()), epsilon_(epsilon) {
  if (!(epsilon > 0)) throw UsageError(text("rms norm: epsilon must be above 0, got ", epsilon));
}

Variable RmsNorm::forward(const Variable& x) { return rms_norm(x, x.tape().parameter(gain_), epsilon_); }

void RmsNorm::visit(Visitor& visit) { visit("gain", gain_); }

}  // namespace engram
