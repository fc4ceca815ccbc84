#pragma once
/// Blocks of memory in the shape of a store's groups, seen parameter by parameter.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/parameter_store.hpp"

namespace engram {

/// Calls found("<parameter>.<what>", tensor) for every parameter; the tensor is its part of the group's block, in its
/// shape. `blocks`: one for every group of the store, as long as the group's values.
inline void visit_blocks(const ParameterStore& store, const std::vector<Tensor>& blocks, std::string_view what,
                         const std::function<void(const std::string& name, const Tensor& tensor)>& found) {
  const auto& groups = store.groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].parameters.size(); ++i) {
      const auto [offset, count] = groups[g].segments[i];
      const Parameter& parameter = *groups[g].parameters[i];
      found(parameter.name() + "." + std::string(what), blocks[g].rows(offset, offset + count).view(parameter.shape()));
    }
  }
}

}  // namespace engram
