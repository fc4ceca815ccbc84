#pragma once
/// The op table: every differentiable operation is one entry, and tests/harness/op_table_test.cpp makes all checks of
/// every entry. An entry is an OpCase in a static `const OpCases cases{...}` of tests/ops/<family>.cpp. To run one
/// entry alone: `engram_tests_ops "op table*" -c <name>`.

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "autograd/variable.hpp"
#include "core/random_stream.hpp"
#include "core/shape.hpp"
#include "tests/reference/array64.hpp"

namespace engram::harness {

using reference::Array64;

/// What an argument is in a run in bf16 (docs/reference/numerics.md); in other runs all have the run's dtype.
enum class Role : std::uint8_t {
  activation,  ///< bf16, with a gradient in bf16
  matrix,      ///< of a parameter: bf16, with a gradient in f32
  vector       ///< of a parameter: f32
};

/// What one argument of a call is filled with. Numbers are a function of the entry's name and the argument's place.
struct Input {
  enum class Kind : std::uint8_t { normal, uniform, index, given, absent };
  Kind kind = Kind::normal;
  Shape shape;
  double low = 0;   ///< uniform: the smallest value
  double high = 1;  ///< uniform: the largest; index: one more than the largest
  std::vector<double> values;
  bool integer = false;  ///< an i32 tensor, whatever the dtype of the run
  bool wide = false;     ///< with `integer`: i64
  bool differentiable = true;
  Role role = Role::activation;

  /// The same values, never differentiated.
  Input constant() const {
    Input fixed = *this;
    fixed.differentiable = false;
    return fixed;
  }
};

/// Standard normal numbers.
inline Input normal(Shape shape) { return {.kind = Input::Kind::normal, .shape = shape}; }
/// Uniform in [low, high).
inline Input uniform(Shape shape, double low, double high) {
  return {.kind = Input::Kind::uniform, .shape = shape, .low = low, .high = high};
}
/// Uniform in [0.5, 2): positive and away from zero.
inline Input positive(Shape shape) { return uniform(shape, 0.5, 2.0); }
/// i32 indices in [0, below); a constant.
inline Input index(Shape shape, std::int64_t below) {
  return {.kind = Input::Kind::index,
          .shape = shape,
          .high = static_cast<double>(below),
          .integer = true,
          .differentiable = false};
}
/// The same as i64.
inline Input wide_index(Shape shape, std::int64_t below) {
  Input input = index(shape, below);
  input.wide = true;
  return input;
}
/// These numbers, row-major.
inline Input values(Shape shape, std::vector<double> numbers) {
  return {.kind = Input::Kind::given, .shape = shape, .values = std::move(numbers)};
}
/// These numbers as i32; a constant.
inline Input integers(Shape shape, std::vector<double> numbers) {
  return {.kind = Input::Kind::given,
          .shape = shape,
          .values = std::move(numbers),
          .integer = true,
          .differentiable = false};
}
/// The same as i64.
inline Input wide_integers(Shape shape, std::vector<double> numbers) {
  Input input = integers(shape, std::move(numbers));
  input.wide = true;
  return input;
}
/// An optional argument that is not given: Variable{} for the function, Array64{} for the reference.
inline Input absent() { return {.kind = Input::Kind::absent, .differentiable = false}; }

/// The operation: takes std::span<const Variable> (or std::span<Variable>, to move out of it), returns a Variable, a
/// std::array or a std::vector of them. Outputs that need no gradient are compared, not differentiated.
class Function {
 public:
  Function() = default;
  template <class Call>
  requires(std::is_invocable_v<Call&, std::span<Variable>> && !std::is_same_v<std::decay_t<Call>, Function>)
      Function(Call call)
      : call_([call = std::move(call)](std::span<Variable> x) {
          using Result = std::invoke_result_t<const Call&, std::span<Variable>>;
          std::vector<Variable> outputs;
          if constexpr (std::is_same_v<Result, Variable>) {
            outputs.push_back(call(x));
          } else {
            auto several = call(x);
            for (Variable& output : several) outputs.push_back(std::move(output));
          }
          return outputs;
        }) {}
  explicit operator bool() const { return static_cast<bool>(call_); }
  std::vector<Variable> operator()(std::span<Variable> x) const { return call_(x); }

 private:
  std::function<std::vector<Variable>(std::span<Variable>)> call_;
};

/// Its plain definition: takes std::span<const Array64>, returns an Array64, a std::vector of them (as many as the
/// function has outputs) or a double, which stands for an output of shape [1].
class Reference {
 public:
  Reference() = default;
  template <class Call>
  requires(std::is_invocable_v<Call&, std::span<const Array64>> && !std::is_same_v<std::decay_t<Call>, Reference>)
      Reference(Call call)
      : call_([call = std::move(call)](std::span<const Array64> x) {
          using Result = std::invoke_result_t<const Call&, std::span<const Array64>>;
          if constexpr (std::is_same_v<Result, Array64>)
            return std::vector<Array64>{call(x)};
          else if constexpr (std::is_arithmetic_v<Result>)
            return std::vector<Array64>{Array64{{1}, {static_cast<double>(call(x))}}};
          else
            return std::vector<Array64>(call(x));
        }) {}
  std::vector<Array64> operator()(std::span<const Array64> x) const { return call_(x); }

 private:
  std::function<std::vector<Array64>(std::span<const Array64>)> call_;
};

/// The most by which rounding to bf16 changes a number, as a share of it; 2 roundings at most twice that.
inline constexpr double kRounding = 0x1p-8;
/// For what only moves numbers, in the place of a number of roundings.
inline constexpr double kMoved = 1e-12;

struct Tolerance {
  double f32 = 2e-6;         ///< |f32 - f64| / |f64|, Euclidean norms, outputs and gradients
  double bf16 = 0;           ///< the same for bf16; 0: the operation has no bf16 form
  double bf16_sums = 0;      ///< for what a bf16 run leaves in f32; 0: as f32, since bf16 terms are exact there
  double forward = 1e-12;    ///< f64 against the reference, per element, relative to the largest element
  double gradient = 1e-6;    ///< f64 against central differences, relative to the largest element of the gradient
  double negligible = 1e-4;  ///< a norm below this times sqrt(elements) counts as this, in the f32 and bf16 checks
};

/// A call that must be refused.
struct BadCall {
  std::vector<Input> inputs;
  std::vector<std::string> contains;  ///< all of these must be in the message, after the name of the op
  Function function = {};             ///< default: the entry's
};

struct OpCase {
  std::string name;
  /// One list of arguments per set; every check is made for every set. Include sizes 1, odd ones, and ones longer
  /// than a kernel's block.
  std::vector<std::vector<Input>> inputs;
  Function function;
  Reference reference;
  Tolerance tolerance = {};
  std::vector<Role> roles = {};  ///< of the arguments; those behind the end are activations
  bool root = false;             ///< output 0 must be a root of backward (it consumes an input): cotangent 1, used once
  bool dropout = false;          ///< random, or of the batch, in training; in inference mode its outputs differ
  bool cpu_threads_exact = true;  ///< same bits with 1 and 2 threads; false for what contains large products
  std::vector<BadCall> errors = {};
};

/// Registers entries when the test program starts.
class OpCases {
 public:
  OpCases(std::initializer_list<OpCase> cases);
};

/// All entries, sorted by name.
const std::vector<OpCase>& all_op_cases();

/// The stream that operation number `operation` (from 0, in recording order inside one call of the function) gets in
/// every call that the harness makes: for references that need the bits of dropout. Valid for the whole program.
RandomStream random_stream(std::uint32_t operation);

/// Numbers of an index input as integers, for references.
inline std::vector<std::int64_t> integers(const Array64& x) { return {x.data.begin(), x.data.end()}; }

}  // namespace engram::harness
