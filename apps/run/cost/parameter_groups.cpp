#include "apps/run/cost/parameter_groups.hpp"

#include <set>
#include <string>

#include "core/error.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

struct Rule {
  std::string_view part;  // of the parameter's name
  ParameterRole role;
};
// The first rule that matches counts: the norms' names hold the names of what they normalise.
constexpr Rule kRules[] = {{"auxiliary.", ParameterRole::output},
                           {"encoder.", ParameterRole::encoder},
                           {"readout.", ParameterRole::readout},
                           {".memory.values.", ParameterRole::memory_values},
                           {".memory.keys", ParameterRole::memory_keys},
                           {".memory.query.", ParameterRole::memory_query},
                           {".memory.", ParameterRole::memory_output},
                           {"_norm.", ParameterRole::layer_norm},
                           {"position_biases.", ParameterRole::positions},
                           {"attention.content_bias", ParameterRole::positions},
                           {"attention.position_bias", ParameterRole::positions},
                           {"attention.distance_", ParameterRole::positions},
                           {"positions", ParameterRole::positions},
                           {"persistent_", ParameterRole::persistent},
                           {"attention.span", ParameterRole::spans},
                           {"attention.", ParameterRole::attention},
                           {"feed_forward.", ParameterRole::feed_forward},
                           {"output.cluster_head.", ParameterRole::cluster_head},
                           {"embedding.", ParameterRole::embeddings},
                           {"position_keys", ParameterRole::positions},
                           {"position_values", ParameterRole::positions},
                           {"output.", ParameterRole::output}};

ParameterRole role_of(const std::string& name) {
  if (name == "embedding.projection" || name == "output.projection") return ParameterRole::projections;
  if (name.starts_with("embedding.clusters.") || name.starts_with("output.clusters.")) {
    if (name.ends_with(".projection")) return ParameterRole::projections;
    if (name.ends_with(".bias")) return ParameterRole::output_biases;
  }
  for (const Rule& rule : kRules)
    if (name.find(rule.part) != std::string::npos) return rule.role;
  throw Error(text("count: parameter ", name, " belongs to no role"));
}

}  // namespace

ParameterCount count_parameters(Module& model) {
  ParameterCount count;
  std::set<const Parameter*> seen;  // a table that memories share is visited by each of them
  Visitor visitor([&](const std::string& name, Parameter& parameter) {
    if (parameter.gradient_kind() == Gradient::none || !seen.insert(&parameter).second) return;
    const std::int64_t elements = parameter.shape().count();
    if (count.total > Shape::kMostElements - elements)
      throw UsageError(
          text("model: must have at most 2^60 - 1 parameters, got more with ", name, " ", parameter.shape()));
    count.by_role[static_cast<std::size_t>(role_of(name))] += elements;
    count.total += elements;
    ++count.tensors;
  });
  model.visit(visitor);
  return count;
}

}  // namespace engram
