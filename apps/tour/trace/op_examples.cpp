#include "apps/tour/trace/op_examples.hpp"

#include <algorithm>
#include <iterator>

#include "apps/terminal/edit_distance.hpp"
#include "core/error.hpp"

namespace engram::tour {
namespace {

std::vector<OpExample> all_sorted() {
  std::vector<OpExample> all{softmax_example()};
  for (auto* const some : {&elementwise_examples, &product_examples, &row_examples, &loss_examples, &shape_examples,
                           &attention_examples, &window_examples, &lookup_examples, &recurrence_examples})
    std::ranges::move(some(), std::back_inserter(all));
  std::ranges::sort(all, {}, &OpExample::name);
  return all;
}

}  // namespace

const std::vector<OpExample>& op_examples() {
  static const std::vector<OpExample> all = all_sorted();
  return all;
}

const OpExample& op_example(std::string_view name) {
  const std::vector<OpExample>& all = op_examples();
  if (const auto found = std::ranges::find(all, name, &OpExample::name); found != all.end()) return *found;
  const auto nearest = std::ranges::min_element(
      all, {}, [part = compared_part(name)](const OpExample& known) { return edit_distance(part, known.name); });
  throw UsageError(text("--trace must name an operation, got '", name, "'\n  the nearest is '", nearest->name,
                        "'; --trace list has all of them"));
}

}  // namespace engram::tour
