#include "nn/optim/named_tensors.hpp"

#include <optional>
#include <string>

namespace engram {

std::vector<NamedTensor> named_tensors(const ParameterStore& store) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, parameter] : store.parameters())
    if (parameter->mapped() == nullptr) tensors.push_back({name, parameter->value(), parameter->division()});
  return tensors;
}

std::vector<NamedTensor> named_tensors(const ParameterStore& store, const Optimizer& optimizer) {
  std::vector<NamedTensor> tensors = named_tensors(store);
  optimizer.visit_state(
      [&tensors](const std::string& name, const Tensor& tensor, const std::optional<Division>& division) {
        tensors.push_back({std::string(kOptimizerPrefix) + name, tensor, division});
      });
  return tensors;
}

}  // namespace engram
