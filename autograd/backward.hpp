#pragma once
/// What a node sees while it runs backwards: the gradients of its outputs, and where those of its inputs go.

#include <initializer_list>

#include "autograd/node.hpp"
#include "autograd/row_gradient.hpp"
#include "core/write.hpp"

namespace engram {

class Tape;

/// Where one input's gradient goes; false when that input needs none.
struct GradTarget {
  Tensor tensor;
  Write write = Write::set;
  explicit operator bool() const { return static_cast<bool>(tensor); }
};

class Backward {
 public:
  /// The gradient that reached output `output`. Throws Error when none did; ask has_output_grad first where an output
  /// may be unused.
  const Tensor& output_grad(int output = 0) const;
  bool has_output_grad(int output = 0) const;
  /// Whether the output was itself one of the losses that backward was called with.
  bool output_is_root(int output = 0) const;

  bool wants_grad(int input) const;
  /// Of the input's gradient: f32 for bf16 matrices of parameters, else the input's own.
  DType grad_dtype(int input) const;
  /// Memory of the input's shape. The first target of a value says set, every further one says add; a parameter's
  /// target is its own gradient and always says add. Ask once per input and write it completely.
  GradTarget input_grad(int input);
  /// Where the input is a table whose gradient is one of rows: its parts, to which this operation adds its own; nullptr
  /// where it is something else, or needs no gradient. input_grad throws Error for such a table.
  RowGradient* row_grad(int input);
  /// The gradient of output `output` is, unchanged, the gradient of these inputs. It is moved to the last of them when
  /// nobody else holds it, else copied or added. output_grad(output) must not be used afterwards.
  void pass_through(std::initializer_list<int> inputs, int output = 0);
  /// Hands over a tensor that already holds the input's gradient (and that nobody else will write to).
  void give(int input, Tensor gradient);

 private:
  friend class Tape;
  Backward(Tape& tape, int node) : tape_(&tape), node_(node) {}
  int input_slot(int input) const;
  int output_slot(int output) const;

  Tape* tape_;
  int node_;
};

}  // namespace engram
