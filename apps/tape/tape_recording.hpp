#pragma once
/// One step of a model as its tape saw it, as plain data: operations, values, gradients as they arrived, memory, times.

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/tape_observer.hpp"
#include "core/dtype.hpp"
#include "core/names.hpp"
#include "core/shape.hpp"

namespace engram {

enum class ValueKind : std::uint8_t {
  parameter,  ///< of a store
  leaf,       ///< its gradient stays on the tape
  constant,   ///< needs no gradient
  output      ///< of an operation
};
constexpr auto names_of(ValueKind) {
  return std::to_array<Named<ValueKind>>({{ValueKind::parameter, "parameter"},
                                          {ValueKind::leaf, "leaf"},
                                          {ValueKind::constant, "constant"},
                                          {ValueKind::output, "output"}});
}

/// Something that operations read or make. Lists of numbers are row-major, and empty where there are more than were
/// asked for.
struct RecordedValue {
  ValueKind kind = ValueKind::output;
  /// Of a parameter, or what it is called in the source; else "leaf 0", "constant 0", or of operation 7 "t7", with
  /// several outputs "t7.0".
  std::string name;
  Shape shape;
  DType dtype = DType::f32;
  std::size_t bytes = 0;
  int maker = -1;               ///< the operation whose output it is; -1: none
  bool wants_gradient = false;  ///< it has a slot
  bool shares = false;          ///< its memory is that of an input of its maker: a view
  std::vector<double> numbers;
  std::vector<double> gradient;  ///< all of it; empty also where none arrived
  std::vector<double> numeric;   ///< the same by differences of the loss; empty where it was not computed
  double difference = 0;         ///< of both: the largest, over the largest numeric one, at least 1e-3
};

/// A share of a gradient, as it arrived.
struct RecordedShare {
  int value = -1;
  Shape shape;  ///< of a parameter, that of the rows that were used
  Arrival how = Arrival::set;
  std::vector<double> before;  ///< what it was added to; empty unless `how` is add
  std::vector<double> after;   ///< the gradient then
};

/// Bytes at one moment.
struct RecordedMemory {
  std::size_t kept = 0;       ///< by the operations on the tape, shared memory once, parameters not counted
  std::size_t gradients = 0;  ///< of values that are no parameters
  std::size_t used = 0;       ///< all memory of the step; 0: its allocator does not say
};

/// An operation in one direction.
struct RecordedPass {
  double seconds = 0;                 ///< in kernels
  std::vector<std::string> kernels;   ///< that ran since the operation before, in order
  std::vector<RecordedShare> shares;  ///< of gradients; of the forward pass those that were known there
  RecordedMemory memory;              ///< after it
};

struct RecordedInput {
  int value = -1;  ///< -1: absent, an optional input that was not given
  Shape shape;     ///< of a parameter, rows alone may be used
};

struct RecordedTensor {
  std::string name;  ///< in the operation's node
  Shape shape;
  std::size_t bytes = 0;
  int value = -1;  ///< which value it is; -1: none, it is the operation's own
};

struct RecordedOp {
  std::string name, scope;  ///< scope: names with '/' between
  std::vector<RecordedInput> inputs;
  std::vector<int> outputs;
  std::vector<RecordedTensor> kept;  ///< for backward
  std::size_t kept_bytes = 0;        ///< their sum
  bool reached = false;              ///< a gradient came to it
  RecordedPass forward, backward;
};

struct TapeRecording {
  std::string title, about;  ///< what the step was of, for people
  std::string table;         ///< tape_table(), before backward
  std::vector<RecordedValue> values;
  std::vector<RecordedOp> ops;    ///< in the order in which they ran
  std::vector<int> losses;        ///< values from which backward began, with gradient 1
  double loss = 0;                ///< their sum
  RecordedMemory turn;            ///< when it began
  int tape = 0;                   ///< which tape of the step's function it was
  std::int64_t most_numbers = 0;  ///< values and gradients are recorded of tensors with at most so many
  std::int64_t checked = 0;       ///< elements whose gradient was compared with differences
  std::int64_t agreed = 0;        ///< of these, whose two derivatives are at most `tolerance` apart
  std::int64_t unchecked = 0;     ///< small ones that were not, as there were too many
  double moved_by = 0;            ///< to both sides, for a difference; 0: none was computed
  double tolerance = 0;           ///< of the largest derivative of the same tensor, which counts as 1e-3 at least
  double worst = 0;               ///< the largest RecordedValue::difference
  int worst_value = -1;           ///< whose; -1: none was compared

  double forward_seconds() const;
  double backward_seconds() const;
  /// Most bytes of tape and gradients at once.
  std::size_t peak_bytes() const;
};

}  // namespace engram
