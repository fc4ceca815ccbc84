#include "tests/exercises/11_memory.hpp"

#include <algorithm>

namespace engram::exercises {
namespace {

/// An element of memory and, behind it, states.
double joined(const Matrix& memory, const Matrix& states, int row, int column) {
  return row < memory.rows() ? memory(row, column) : states(row - memory.rows(), column);
}

}  // namespace

Matrix next_memory(const Matrix& memory, const Matrix& states, int length) {
  const int all = memory.rows() + states.rows(), kept = std::min(length, all);
  Matrix next(kept, states.columns());
  for (int r = 0; r < kept; ++r)
    for (int c = 0; c < next.columns(); ++c) next(r, c) = joined(memory, states, all - kept + r, c);
  return next;
}

Matrix scores_by_key(const Matrix& by_distance, int memory_rows) {
  Matrix scores(by_distance.rows(), by_distance.columns());
  for (int i = 0; i < scores.rows(); ++i)
    for (int j = 0; j <= memory_rows + i; ++j) scores(i, j) = by_distance(i, memory_rows + i - j);
  return scores;
}

void keys_backward(const Matrix& memory, const Matrix& states, const Matrix& w, const Matrix& dkeys, Matrix& dstates,
                   Matrix& dw) {
  dw = Matrix(w.rows(), w.columns());
  for (int r = 0; r < dkeys.rows(); ++r)
    for (int o = 0; o < w.rows(); ++o)
      for (int i = 0; i < w.columns(); ++i) dw(o, i) += dkeys(r, o) * joined(memory, states, r, i);
  dstates = Matrix(states.rows(), states.columns());
  for (int r = 0; r < states.rows(); ++r)
    for (int o = 0; o < w.rows(); ++o)
      for (int i = 0; i < w.columns(); ++i) dstates(r, i) += dkeys(memory.rows() + r, o) * w(o, i);
}

}  // namespace engram::exercises
