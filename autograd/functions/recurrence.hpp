#pragma once

#include "autograd/variable.hpp"
#include "core/rules/recurrent_cell.hpp"

namespace engram {

/// What a chunk of time steps begins with, constants: state crosses chunks without gradients. Absent tensors are the
/// start of all streams.
struct RecurrentStart {
  /// [B, H, k], the newest last. Any number of rows: those beyond the cell's history are not read, missing ones are
  /// zero.
  Tensor hidden;
  /// [B, H', k] likewise; lstm only.
  Tensor cells;
};

struct Recurrence {
  Variable outputs;  ///< h: [B, M, k]
  Tensor cells;      ///< c: [B, M, k], of the lstm only; a constant
};

/// M steps of a recurrent layer over B streams; the formulas are those of core/rules/recurrent_cell.hpp.
/// inputs: [B, M, blocks k], what does not depend on earlier steps: one linear() of the chunk. Blocks: rnn and fofe 1,
/// lstm 4 (i, f, g, o), gated 1 + N (W x + b, then G_1 x, ..., G_N x). Passed with std::move and held by nobody else,
/// its memory serves the gates; else they are copied.
/// weight: rnn [k, k]; lstm [4 k, k]; fofe [N k, k] = U_1, ..., U_N; gated [2 N k, k] = U_1, ..., U_N, R_1, ..., R_N.
/// preceding: i32 [B, M], a constant: how many positions before this one belong to its sequence, in this chunk and
/// before it: 0 resets the stream, h_{t-m} is read where it is at least m.
/// f32 or f64. M is at least 1, B may be 0. Gradients flow to inputs and weight, within the chunk. Throws ShapeError,
/// DTypeError, DeviceError, or UsageError for an order below 1 or a decay outside (0, 1].
Recurrence recurrence(Variable inputs, const Variable& weight, const RecurrentStart& start, const Tensor& preceding,
                      const RecurrenceOptions& options);

}  // namespace engram
