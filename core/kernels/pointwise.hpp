#pragma once
/// Element-wise activations; the formulas are in core/rules/pointwise.hpp.

#include "core/kernel.hpp"
#include "core/rules/pointwise.hpp"

namespace engram::kernels {

/// y[i] = F::value(x[i]).
template <class F>
inline constinit Kernel<void(const Tensor& x, Tensor& y)> pointwise_forward{F::forward_name};
/// dx[i] (set or add) F::derivative(x[i], y[i]) dy[i].
template <class F>
inline constinit Kernel<void(const Tensor& x, const Tensor& y, const Tensor& dy, const Target& dx)> pointwise_backward{
    F::backward_name};

}  // namespace engram::kernels
