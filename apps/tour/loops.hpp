#pragma once
/// The arithmetic of steps 2 to 6: plain loops over f64 memory of the host. Step 7 replaces them by kernels.

#include <cmath>

#include "core/kernels/matmul.hpp"
#include "core/tensor.hpp"
#include "core/write.hpp"

namespace engram::tour {

using kernels::Transpose;

/// to = value, or to += value.
inline void store(double& to, double value, Write write) {
  if (write == Write::add)
    to += value;
  else
    to = value;
}

/// y (set or add) a b, where a and b may be read transposed. All [rows, columns].
inline void multiply(const Tensor& a, Transpose of_a, const Tensor& b, Transpose of_b, const Tensor& y, Write write) {
  const bool turn_a = of_a == Transpose::yes, turn_b = of_b == Transpose::yes;
  const std::int64_t rows = y.shape()[0], columns = y.shape()[1], inner = a.shape()[turn_a ? 0 : 1];
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t k = 0; k < inner; ++k)
        sum += a.data<double>()[turn_a ? k * rows + i : i * inner + k] *
               b.data<double>()[turn_b ? j * inner + k : k * columns + j];
      store(y.data<double>()[i * columns + j], sum, write);
    }
  }
}

/// y[i] (set or add) x[i].
inline void copy(const Tensor& x, const Tensor& y, Write write) {
  for (std::int64_t i = 0; i < y.count(); ++i) store(y.data<double>()[i], x.data<double>()[i], write);
}
/// y[i] (set or add) value.
inline void fill(const Tensor& y, double value, Write write) {
  for (std::int64_t i = 0; i < y.count(); ++i) store(y.data<double>()[i], value, write);
}
/// y[i] = tanh(x[i]).
inline void tanh_forward(const Tensor& x, const Tensor& y) {
  for (std::int64_t i = 0; i < y.count(); ++i) y.data<double>()[i] = std::tanh(x.data<double>()[i]);
}
/// dx[i] (set or add) (1 - y[i]^2) dy[i].
inline void tanh_backward(const Tensor& y, const Tensor& dy, const Tensor& dx, Write write) {
  for (std::int64_t i = 0; i < y.count(); ++i) {
    const double value = y.data<double>()[i];
    store(dx.data<double>()[i], (1 - value * value) * dy.data<double>()[i], write);
  }
}
/// y[0] = sum of x.
inline void sum_forward(const Tensor& x, const Tensor& y) {
  y.data<double>()[0] = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) y.data<double>()[0] += x.data<double>()[i];
}

}  // namespace engram::tour
