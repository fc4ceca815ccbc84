#pragma once
/// Named initialisers: of the all-attention family ([all-attention 1.9]; the released models use them), and
/// of Transformer-XL.

#include <cmath>
#include <cstdint>

#include "autograd/initializer.hpp"

namespace engram::init {

inline Initializer zeros() { return {Initializer::Kind::constant, 0.0}; }
inline Initializer ones() { return {Initializer::Kind::constant, 1.0}; }
inline Initializer constant(double value) { return {Initializer::Kind::constant, value}; }
/// U(-1/sqrt(fan_in), 1/sqrt(fan_in)): weights and biases of a linear map with that many inputs.
inline Initializer uniform_fan_in(std::int64_t fan_in) {
  return {Initializer::Kind::uniform, 1.0 / std::sqrt(static_cast<double>(fan_in))};
}
/// U(-sqrt(fan_in), sqrt(fan_in)): what the paper prints for the matrices of attention, most likely a misprint.
inline Initializer uniform_root(std::int64_t fan_in) {
  return {Initializer::Kind::uniform, std::sqrt(static_cast<double>(fan_in))};
}
/// N(0, 1): embeddings and relative positions.
inline Initializer standard_normal() { return {Initializer::Kind::normal, 1.0}; }
/// N(0, variance).
inline Initializer normal_variance(double variance) { return {Initializer::Kind::normal, std::sqrt(variance)}; }
/// N(mean, deviation^2): Transformer-XL's weights have mean 0, the gains of its layer norms mean 1
/// ([transformer-xl 4.1]).
inline Initializer normal(double deviation, double mean = 0) { return {Initializer::Kind::normal, deviation, mean}; }
/// U(-bound, bound): Transformer-XL's other choice (section 4.1: 0.1).
inline Initializer uniform(double bound) { return {Initializer::Kind::uniform, bound}; }

}  // namespace engram::init
