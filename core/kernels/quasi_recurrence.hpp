#pragma once
/// The steps in time of a quasi-recurrent layer, which multiply no matrix: fo-pooling of Bradbury et al. (2017);
/// [key-value-predict 1.9].

#include "core/kernel.hpp"
#include "core/rules/recurrent_cell.hpp"

namespace engram::kernels {

/// B streams, M steps, k units. start: [B, H', k], cells before the first step, the newest last, of which the last row
/// is read; preceding: i32 [B, M], how many positions before this one belong to its sequence. c_{t-1} exists where
/// preceding[b, t] is at least 1 and t >= 1 or H' >= 1; else it is zero. gates: [B, M, 3 k], pre-activations of z, f
/// and o, whose activations take their place. outputs, cells: [B, M, k]:
///   c_t = f_t * c_{t-1} + (1 - f_t) * z_t,  h_t = o_t * c_t. f32 or f64.
inline constinit Kernel<void(const Tensor& start, const Tensor& preceding, Tensor& gates, Tensor& outputs,
                             Tensor& cells)>
    quasi_recurrence_forward{"quasi_recurrence_forward"};

/// From doutputs, the gradient of the outputs: [B, M, k]. gates: those of the forward pass become the gradient of the
/// pre-activations. Nothing flows back before the first step, nor where c_{t-1} does not exist.
inline constinit Kernel<void(const Tensor& start, const Tensor& preceding, const Tensor& cells, const Tensor& doutputs,
                             Tensor& gates)>
    quasi_recurrence_backward{"quasi_recurrence_backward"};

}  // namespace engram::kernels
