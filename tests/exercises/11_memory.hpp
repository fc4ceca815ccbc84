#pragma once
/// Exercise 11: docs/exercises/11_memory.md.

#include "tests/exercises/matrix.hpp"

namespace engram::exercises {

/// What is remembered for the next segment: the last `length` rows of memory and, behind it, states. All of them where
/// there are fewer. Both have the same number of columns; memory may have no rows.
Matrix next_memory(const Matrix& memory, const Matrix& states, int length);

/// Scores by distance become scores by key. by_distance(i, d): the score of query i for a key d positions back,
/// [segment, memory_rows + segment]. Query i stands at position memory_rows + i, key j at position j. Returns
/// [segment, memory_rows + segment], whose (i, j) is the score of query i for key j; 0 where key j lies in the future.
Matrix scores_by_key(const Matrix& by_distance, int memory_rows);

/// The forward pass was keys = (memory; states) w^T, the rows of memory first; w is [out, in]. dkeys is the gradient of
/// keys. Writes dstates and dw. The memory is a constant: it gets no gradient.
void keys_backward(const Matrix& memory, const Matrix& states, const Matrix& w, const Matrix& dkeys, Matrix& dstates,
                   Matrix& dw);

}  // namespace engram::exercises
