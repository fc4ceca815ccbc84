#pragma once
/// Parameters that training leaves as they are, found by patterns over their names: training.freeze.

#include <cstdint>
#include <string>
#include <vector>

#include "autograd/parameter_store.hpp"

namespace engram {

/// Freezes what the patterns match (ParameterStore::freeze), buffers too, by either name of what is tied. A pattern is
/// one of the shell's: * is any number of characters, dots among them, ? is one, [..] one of several. The store must
/// not be placed yet. Throws UsageError for a pattern that matches nothing, with names that are near, and when nothing
/// would be left to train.
void freeze_parameters(ParameterStore& store, const std::vector<std::string>& patterns);

/// Of what is frozen: tensors, and their numbers; buffers are not counted.
struct FrozenCount {
  std::int64_t tensors = 0, numbers = 0;
};
FrozenCount frozen_count(const ParameterStore& store);

}  // namespace engram
