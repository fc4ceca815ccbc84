#pragma once
/// A tensor with a place on a tape.

#include "core/tensor.hpp"

namespace engram {

class Tape;

class Variable {
 public:
  /// Absent: an optional input that is not given.
  Variable() = default;

  explicit operator bool() const { return static_cast<bool>(value_); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  DType dtype() const { return value_.dtype(); }
  /// Functions find the step, and through it memory and device, here: there are no globals.
  Tape& tape() const { return *tape_; }
  bool requires_grad() const { return slot_ >= 0; }
  /// The same place on the tape without the value: asks for a gradient after an operation consumed the memory.
  Variable without_value() const { return Variable({}, tape_, slot_); }

 private:
  friend class Tape;
  Variable(Tensor value, Tape* tape, int slot) : value_(static_cast<Tensor&&>(value)), tape_(tape), slot_(slot) {}

  Tensor value_;
  Tape* tape_ = nullptr;
  int slot_ = -1;  // where its gradient is kept on the tape; -1: it needs none
};

}  // namespace engram
