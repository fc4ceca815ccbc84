#pragma once
/// Exercise 4: docs/exercises/04_tape.md.

#include <memory>

namespace engram::exercises {

/// A tape of scalars. A place is the number of a value on it: 0 for the first, and so on.
class ScalarTape {
 public:
  virtual ~ScalarTape() = default;

  /// Each computes one value, remembers how, and returns the value's place.
  virtual int leaf(double value) = 0;
  virtual int add(int a, int b) = 0;
  virtual int multiply(int a, int b) = 0;
  virtual int exponential(int a) = 0;

  virtual double value(int place) const = 0;

  /// Computes the derivative of the value at `result` by every value on the tape. May be called again, with another
  /// result: the derivatives are then those of the last call alone.
  virtual void backward(int result) = 0;
  virtual double gradient(int place) const = 0;
};

/// An empty tape.
std::unique_ptr<ScalarTape> make_tape();

}  // namespace engram::exercises
