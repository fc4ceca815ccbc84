#pragma once
/// What a node sees while it runs backwards: the gradients of its outputs, and where those of its inputs go.

#include <initializer_list>
#include <memory_resource>
#include <utility>
#include <vector>

#include "autograd/node.hpp"
#include "autograd/row_gradient.hpp"
#include "autograd/tape_observer.hpp"
#include "core/target.hpp"

namespace engram {

class Tape;

class Backward {
 public:
  /// The gradient that reached output `output`. Throws Error when none did; ask has_output_grad first where an output
  /// may be unused.
  const Tensor& output_grad(int output = 0) const;
  bool has_output_grad(int output = 0) const;
  /// Whether the output was itself one of the losses that backward was called with.
  bool output_is_root(int output = 0) const;

  bool wants_grad(int input) const;
  /// Memory of the input's shape; false when the input needs no gradient. The first target of a value says set, every
  /// further one says add; a parameter's target is its own gradient and always says add. Ask once per input and write
  /// it completely before another one that may be the same value is asked for.
  Target input_grad(int input);
  /// The same for a kernel that writes the gradients of several inputs at once, some of which may be one value: an
  /// input whose gradient an earlier one has already gets memory of its own, which is added when the node is done.
  Target separate_grad(int input);
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
  Backward(Tape& tape, int node);
  bool is_one_gradient(int a, int b) const;
  /// Follows the node's backward pass.
  void add_repeated();
  /// Tells the tape's observer, if it has one, of a share that is about to arrive.
  void tell(int slot, Arrival how) const;
  int input_slot(int input) const;
  int output_slot(int output) const;

  Tape* tape_;
  int node_;
  std::pmr::vector<std::pair<int, Tensor>> repeated_;  // inputs with memory of their own, see separate_grad
};

}  // namespace engram
