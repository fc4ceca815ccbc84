#include "tests/exercises/03_linear.hpp"

namespace engram::exercises {

void linear_backward(const Matrix& x, const Matrix& w, const Matrix& dy, Matrix& dx, Matrix& dw, std::span<double> db) {
  const int rows = x.rows(), in = x.columns(), out = w.rows();
  for (int r = 0; r < rows; ++r)
    for (int i = 0; i < in; ++i) {
      dx(r, i) = 0;
      for (int o = 0; o < out; ++o) dx(r, i) += dy(r, o) * w(o, i);
    }
  for (int o = 0; o < out; ++o) {
    for (int i = 0; i < in; ++i) {
      dw(o, i) = 0;
      for (int r = 0; r < rows; ++r) dw(o, i) += dy(r, o) * x(r, i);
    }
    db[static_cast<std::size_t>(o)] = 0;
    for (int r = 0; r < rows; ++r) db[static_cast<std::size_t>(o)] += dy(r, o);
  }
}

}  // namespace engram::exercises
