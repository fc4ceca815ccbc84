#pragma once
/// A recurrent layer's steps in time, for all cells (core/rules/recurrent_cell.hpp).

#include <vector>

#include "core/kernel.hpp"
#include "core/rules/recurrent_cell.hpp"

namespace engram {

/// What both passes read. B streams, M steps, k units, N = options.history(), G = options.weight_blocks().
///
/// h_{t-m} exists for step t of stream b if preceding[b, t] >= m and t - m >= -H, c_{t-1} if preceding[b, t] >= 1 and
/// t >= 1 or H' >= 1; elsewhere they are zero and nothing flows back.
struct RecurrenceInputs {
  Tensor weight;     ///< [G k, k]
  Tensor hidden;     ///< [B, H, k]: hidden states before the first step, the newest last; more than N are not read
  Tensor cells;      ///< [B, H', k]: cells likewise (lstm; of others nothing is read); more than 1 are not read
  Tensor preceding;  ///< i32 [B, M]: how many positions before this one belong to its sequence
  RecurrenceOptions options;
};

inline void collect_tensors(std::vector<TensorArgument>& list, const RecurrenceInputs& in) {
  for (const Tensor* tensor : {&in.weight, &in.hidden, &in.cells, &in.preceding}) list.push_back({tensor, false});
}

namespace kernels {

/// Hidden states outputs: [B, M, k] and, of the lstm, cells: [B, M, k] (else absent).
/// gates: [B, M, blocks k], the layer's inputs; lstm: gates after their activations take their place, gated: q_m does
/// (the first block stays); the other cells leave them as they are. products: of the higher-order cells [N + M - 1, B,
/// G k], else absent: row s + N holds all matrices times h_s, for s = -N, ..., M - 2; zero where H < -s. The backward
/// pass of the gated cell reads them. f32 or f64. With ProductPrecision::bf16 the products round their operands.
inline constinit Kernel<void(const RecurrenceInputs& in, Tensor& gates, Tensor& products, Tensor& outputs,
                             Tensor& cells)>
    recurrence_forward{"recurrence_forward"};

/// From doutputs, the gradient of the outputs: [B, M, k].
/// gates: those of the forward pass (of rnn and fofe not read) become the gradient of the inputs.
/// products: those of the forward pass (of fofe not read) become the gradient of each, zero where nothing used it.
/// Nothing flows back before the first step.
inline constinit Kernel<void(const RecurrenceInputs& in, const Tensor& outputs, const Tensor& cells,
                             const Tensor& doutputs, Tensor& gates, Tensor& products)>
    recurrence_backward{"recurrence_backward"};

/// The hidden states that the weight met, so that its gradient is one product over all steps.
/// rnn, lstm: states [B, M, k] = h_{t-1}; the others: [N + M - 1, B, k] = h_s as `products` have them. Zero where there
/// is none.
inline constinit Kernel<void(const RecurrenceInputs& in, const Tensor& outputs, Tensor& states)> recurrence_states{
    "recurrence_states"};

}  // namespace kernels
}  // namespace engram
