#pragma once
/// Activations: value and derivative side by side, read by every device's compiler.

#include <cmath>

#include "core/host_device.hpp"

namespace engram {

/// max(x, 0); derivative 0 at 0.
struct Relu {
  static constexpr const char* name = "relu";
  static constexpr const char* forward_name = "relu_forward";
  static constexpr const char* backward_name = "relu_backward";
  template <class T>
  ENGRAM_HD static T value(T x) {
    return x > T(0) ? x : T(0);
  }
  template <class T>
  ENGRAM_HD static T derivative(T x, T) {
    return x > T(0) ? T(1) : T(0);
  }
};

/// x Phi(x) with the normal distribution function, not its tanh approximation. Hendrycks, Gimpel (2016).
struct Gelu {
  static constexpr const char* name = "gelu";
  static constexpr const char* forward_name = "gelu_forward";
  static constexpr const char* backward_name = "gelu_backward";
  template <class T>
  ENGRAM_HD static T value(T x) {
    return T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440)));
  }
  template <class T>
  ENGRAM_HD static T derivative(T x, T) {
    return T(0.5) * (T(1) + std::erf(x * T(0.70710678118654752440))) +
           x * T(0.39894228040143267794) * std::exp(T(-0.5) * x * x);
  }
};

struct Tanh {
  static constexpr const char* name = "tanh";
  static constexpr const char* forward_name = "tanh_forward";
  static constexpr const char* backward_name = "tanh_backward";
  template <class T>
  ENGRAM_HD static T value(T x) {
    return std::tanh(x);
  }
  template <class T>
  ENGRAM_HD static T derivative(T, T y) {
    return T(1) - y * y;
  }
};

/// 1 / (1 + exp(-x)).
struct Sigmoid {
  static constexpr const char* name = "sigmoid";
  static constexpr const char* forward_name = "sigmoid_forward";
  static constexpr const char* backward_name = "sigmoid_backward";
  template <class T>
  ENGRAM_HD static T value(T x) {
    return T(1) / (T(1) + std::exp(-x));
  }
  template <class T>
  ENGRAM_HD static T derivative(T, T y) {
    return y * (T(1) - y);
  }
};

/// x / (1 + exp(-x)). Elfwing, Uchibe, Doya (2018); Ramachandran, Zoph, Le (2017) call it swish.
struct Silu {
  static constexpr const char* name = "silu";
  static constexpr const char* forward_name = "silu_forward";
  static constexpr const char* backward_name = "silu_backward";
  template <class T>
  ENGRAM_HD static T value(T x) {
    return x / (T(1) + std::exp(-x));
  }
  template <class T>
  ENGRAM_HD static T derivative(T x, T) {
    const T share = T(1) / (T(1) + std::exp(-x));
    return share * (T(1) + x * (T(1) - share));
  }
};

template <class... Types>
struct TypeList {};
/// Every backend binds its generic loop for each of these.
using Activations = TypeList<Relu, Gelu, Tanh, Sigmoid, Silu>;

}  // namespace engram
