#include "apps/run/model/frozen_parameters.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "apps/terminal/edit_distance.hpp"
#include "core/error.hpp"
#include "nn/optim/shards.hpp"

namespace engram {
namespace {

/// First names, and second ones of what is tied.
std::vector<std::string> all_names(const ParameterStore& store) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : store.parameters()) names.push_back(name);
  for (const auto& [name, first] : store.aliases()) names.push_back(name);
  return names;
}

/// The three names that are nearest to the pattern; where it is far from all of them, the parts that a model has.
std::string nearby(const std::vector<std::string>& names, const std::string& pattern) {
  std::vector<std::string> near = names;
  const std::string_view part_of_pattern = compared_part(pattern);
  std::ranges::stable_sort(near, {}, [&](const std::string& name) { return edit_distance(part_of_pattern, name); });
  if (!near.empty() && is_near(pattern, near.front())) {
    near.resize(std::min<std::size_t>(near.size(), 3));
  } else {
    std::set<std::string> parts;
    for (const std::string& name : names) {
      const std::string_view part = part_of_model(name);
      parts.insert(part == name ? name : std::string(part) + ".*");
    }
    near.assign(parts.begin(), parts.end());
  }
  std::string list;
  constexpr std::size_t kMost = 12;
  for (std::size_t i = 0; i < near.size() && i < kMost; ++i) list += (i == 0 ? "" : ", ") + near[i];
  return list + (near.size() > kMost ? ", ..." : "");
}

}  // namespace

void freeze_parameters(ParameterStore& store, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return;
  const std::vector<std::string> names = all_names(store);
  for (const std::string& pattern : patterns) {
    bool matches = false;
    for (const std::string& name : names) {
      if (::fnmatch(pattern.c_str(), name.c_str(), 0) != 0) continue;
      store.freeze(name);
      matches = true;
    }
    if (!matches)
      throw UsageError(text("training: freeze must match names of the model's parameters, got '", pattern,
                            "', which matches none\n  near it: ", nearby(names, pattern)));
  }
  const auto is_trained = [](const auto& entry) {
    return entry.second->gradient_kind() != Gradient::none && !entry.second->frozen();
  };
  if (std::ranges::none_of(store.parameters(), is_trained))
    throw UsageError("training: freeze must leave something to train, got patterns that match every parameter");
}

FrozenCount frozen_count(const ParameterStore& store) {
  FrozenCount count;
  for (const auto& [name, parameter] : store.parameters()) {
    if (!parameter->frozen() || parameter->gradient_kind() == Gradient::none) continue;
    ++count.tensors;
    count.numbers += parameter->shape().count();
  }
  return count;
}

}  // namespace engram
