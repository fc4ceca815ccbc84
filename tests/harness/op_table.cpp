#include "tests/harness/op_table.hpp"

#include <algorithm>

namespace engram::harness {
namespace {

// Filled before main by the static objects of tests/ops.
std::vector<OpCase>& registry() {
  static std::vector<OpCase> entries;
  return entries;
}

}  // namespace

OpCases::OpCases(std::initializer_list<OpCase> cases) {
  registry().insert(registry().end(), cases.begin(), cases.end());
}

const std::vector<OpCase>& all_op_cases() {
  static const std::vector<OpCase> sorted = [] {
    std::vector<OpCase> entries = registry();
    std::ranges::sort(entries, {}, &OpCase::name);
    return entries;
  }();
  return sorted;
}

}  // namespace engram::harness
