#pragma once
/// A trained tensor: its value and its gradient live in the flat blocks of a ParameterStore, and so does the bf16 copy
/// of a matrix that steps with bf16 activations read.

#include <string>
#include <string_view>

#include "autograd/initializer.hpp"
#include "core/activation_precision.hpp"
#include "core/tensor.hpp"

namespace engram {

class ParameterStore;

class Parameter {
 public:
  /// No memory yet: a parameter gets it when its store is placed. `group` names the parameters that an optimiser
  /// treats alike ("weights", "spans", ...).
  Parameter(Shape shape, Initializer initializer, std::string_view group = "weights")
      : shape_(shape), initializer_(initializer), group_(group) {}
  Parameter(const Parameter&) = delete;  // it has one identity: the tape and the store point at it
  Parameter& operator=(const Parameter&) = delete;
  /// Only before it is registered in a store.
  Parameter(Parameter&&) = default;
  Parameter& operator=(Parameter&&) = default;
  ~Parameter();

  const Shape& shape() const { return shape_; }
  const Initializer& initializer() const { return initializer_; }
  const std::string& group() const { return group_; }
  /// The path it was visited under, "" before.
  const std::string& name() const { return name_; }
  /// Throws Error when the parameter was never visited and so has no memory.
  const Tensor& value() const;
  const Tensor& gradient() const;
  /// What a step reads: the value, or, with bf16 activations, the bf16 copy of a matrix (two axes or more). Throws
  /// Error as value() does, and when the store keeps no copies.
  const Tensor& value_for(ActivationPrecision activations) const;
  bool is_matrix() const { return shape_.rank() >= 2; }
  bool placed() const { return static_cast<bool>(value_); }

 private:
  friend class ParameterStore;
  Shape shape_;
  Initializer initializer_;
  std::string group_;
  std::string name_;
  Tensor value_;
  Tensor gradient_;
  Tensor rounded_;                   // bf16
  ParameterStore* store_ = nullptr;  // owns the memory; whichever goes first tells the other
};

}  // namespace engram
