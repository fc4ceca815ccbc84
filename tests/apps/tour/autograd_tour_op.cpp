/// The row that step 14 of docs/guide/autograd-tour*.md enters into the op table, and the table's checks of it.

#include <algorithm>

#include "apps/tour/square.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_checks.hpp"

namespace engram::harness::autograd_tour_op_test {
namespace {

Array64 squares(Array64 x) {
  for (double& value : x.data) value *= value;
  return x;
}

const OpCases cases{
    OpCase{.name = "square",
           .inputs = {{normal({3, 7})}, {normal({1})}, {normal({2, 1031})}},
           .function = [](std::span<const Variable> x) { return tour::square(x[0]); },
           .reference = [](std::span<const Array64> x) { return squares(x[0]); }},
};

TEST_CASE("autograd tour: the added operation passes every check of the op table", "[tour]") {
  Backend& cpu = *available_backends().front();
  const auto& entries = all_op_cases();
  const auto op = std::ranges::find(entries, "square", &OpCase::name);
  REQUIRE(op != entries.end());
  for (std::size_t set = 0; set < op->inputs.size(); ++set) {
    INFO("inputs " << set);
    CHECK(check_reference(cpu, *op, set) == Faults{});
    CHECK(check_gradient(cpu, *op, set) == Faults{});
    CHECK(check_precision(cpu, cpu, *op, set) == Faults{});
    CHECK(check_add_mode(cpu, *op, set, DType::f64) == Faults{});
    CHECK(check_unwanted(cpu, *op, set) == Faults{});
    CHECK(check_memory(cpu, *op, set, DType::f32) == Faults{});
    CHECK(check_determinism(cpu, *op, set, DType::f32) == Faults{});
  }
}

}  // namespace
}  // namespace engram::harness::autograd_tour_op_test
