#pragma once
/// Plain definitions of recurrent layers ([key-value-predict 1.1, 1.2, 1.6, 1.9, 2]), from inputs that
/// hold everything which does not depend on time. Loops over single elements; forward only.

#include "tests/reference/array64.hpp"

namespace engram::reference {

/// What comes before a chunk, and where sequences begin. States before the first step: [B, rows, k], the newest last, a
/// row that is not there counting as zero. preceding [B, M]: positions of the same sequence before each.
struct RecurrencePast {
  Array64 hidden, cells, preceding;
};

/// h_t = tanh(inputs_t + U h_{t-1}). inputs [B, M, k], weight U [k, k]; result [B, M, k].
Array64 elman(const Array64& inputs, const Array64& weight, const RecurrencePast& past);

struct Lstm {
  Array64 hidden, cells;  // [B, M, k]
};
/// inputs [B, M, 4 k], weight [4 k, k], blocks i, f, g, o.
Lstm lstm(const Array64& inputs, const Array64& weight, const RecurrencePast& past);

/// h_t = tanh(inputs_t + sum_m decay^m U_m h_{t-m}). weight [N k, k].
Array64 hornn_fofe(const Array64& inputs, const Array64& weight, const RecurrencePast& past, int order, double decay);

/// h_t = tanh(inputs_t + sum_m sigmoid(G_m x_t + R_m h_{t-m}) * (U_m h_{t-m})). inputs [B, M, (1 + N) k], behind the
/// first block G_1 x, ..., G_N x; weight [2 N k, k]: U_1, ..., U_N, R_1, ..., R_N.
Array64 hornn_gated(const Array64& inputs, const Array64& weight, const RecurrencePast& past, int order);

/// c_t = f c_{t-1} + (1 - f) z, h_t = o c_t, with z = tanh and f, o = sigmoid of inputs [B, M, 3 k], blocks z, f, o.
Lstm fo_pooling(const Array64& inputs, const RecurrencePast& past);

}  // namespace engram::reference
