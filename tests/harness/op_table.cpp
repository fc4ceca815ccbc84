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
  for (OpCase entry : cases) {
    for (std::vector<Input>& set : entry.inputs)
      for (std::size_t i = 0; i < std::min(set.size(), entry.roles.size()); ++i) set[i].role = entry.roles[i];
    registry().push_back(std::move(entry));
  }
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
