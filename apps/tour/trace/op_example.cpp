#include "apps/tour/trace/op_example.hpp"

#include <cmath>
#include <utility>

#include "autograd/initializer.hpp"

namespace engram::tour {

ExampleInput drawn(std::string_view name, Shape shape, double bound) {
  std::vector<double> numbers(static_cast<std::size_t>(shape.count()));
  Initializer{Initializer::Kind::uniform, bound}.fill(numbers.data(), DType::f64, shape.count(), /*seed=*/1, name);
  for (double& number : numbers) number = std::round(100 * number) / 100;
  return {.name = name, .shape = shape, .numbers = std::move(numbers)};
}

ExampleInput drawn_constant(std::string_view name, Shape shape, double bound) {
  ExampleInput input = drawn(name, shape, bound);
  input.constant = true;
  return input;
}

ExampleInput counts(std::string_view name, Shape shape, std::vector<double> numbers) {
  return {.name = name, .shape = shape, .numbers = std::move(numbers), .dtype = DType::i32};
}

ExampleInput row_ids(std::string_view name, Shape shape, std::vector<double> numbers) {
  return {.name = name, .shape = shape, .numbers = std::move(numbers), .dtype = DType::i64};
}

}  // namespace engram::tour
