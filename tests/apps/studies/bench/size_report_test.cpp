/// Steps beside each other: what is told of each, and what is drawn.

#include "apps/studies/bench/size_report.hpp"

#include <string>
#include <vector>

#include "tests/harness/catch.hpp"

namespace engram::size_report_test {
namespace {

StepOfSize step(std::string name, std::int64_t parameters, double seconds, double outside) {
  return {.name = std::move(name),
          .parameters = parameters,
          .seconds = seconds,
          .least_seconds = seconds / 4,
          .calls = 100,
          .observed_seconds = 2 * seconds,
          .outside_seconds = outside};
}

}  // namespace

TEST_CASE("steps by size: a row for each model, in their order, and none for one alone") {
  const std::vector<StepOfSize> steps{step("wide", 4000, 0.02, 0.001), step("narrow", 100, 0.001, 0.0005)};
  const std::string table = table_of(steps);
  INFO(table);
  CHECK_THAT(table, ContainsSubstring("wide          4000       20.0     4.00     2.5%      10.00") &&
                        ContainsSubstring("narrow         100        1.0     4.00    25.0%       5.00"));
  CHECK(table.find("wide") < table.find("narrow"));
  CHECK(table_of({steps.front()}).empty());
}

TEST_CASE("steps by size: what is outside of kernels is drawn by size, also where there is nothing") {
  const std::string svg = svg_of({step("wide", 4000, 0.02, 0), step("narrow", 100, 0.001, 0.0005)});
  CHECK_THAT(svg, ContainsSubstring("milliseconds a step") && ContainsSubstring("microseconds for each call") &&
                      ContainsSubstring("its floor"));
}

}  // namespace engram::size_report_test
