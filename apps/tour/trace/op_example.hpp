#pragma once
/// An operation with arguments small enough to be read: what `autograd_tour --trace` runs forwards and backwards.

#include <cstdint>
#include <string_view>
#include <vector>

#include "autograd/gradcheck.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace engram::tour {

/// One argument, of f64 unless it holds ids or counts.
struct ExampleInput {
  std::string_view name;
  Shape shape;
  std::vector<double> numbers;  ///< row-major, as many as `shape` has elements
  DType dtype = DType::f64;     ///< or i32, i64
  bool constant = false;        ///< of f64, but never differentiated

  bool differentiated() const { return dtype == DType::f64 && !constant; }
};

struct OpExample {
  std::string_view name;     ///< by which it is asked for
  std::string_view source;   ///< its file in autograd/functions, without extension
  std::string_view formula;  ///< in one line of at most 80 characters
  std::vector<ExampleInput> inputs;
  std::vector<std::string_view> outputs;  ///< names, as many as the function returns
  CheckedFunction function;
  bool root = false;  ///< output 0 is a loss that must be a root of backward: it consumes an input
};

/// Numbers with two digits after the point, between -bound and bound: the same for the same name and shape.
ExampleInput drawn(std::string_view name, Shape shape, double bound = 1.5);
/// The same, never differentiated.
ExampleInput drawn_constant(std::string_view name, Shape shape, double bound = 1.5);
/// These whole numbers as i32, a constant.
ExampleInput counts(std::string_view name, Shape shape, std::vector<double> numbers);
/// The same as i64.
ExampleInput row_ids(std::string_view name, Shape shape, std::vector<double> numbers);

}  // namespace engram::tour
