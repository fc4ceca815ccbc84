#pragma once
/// What a model and its optimiser are saved as and read again: save_checkpoint() and CheckpointFile::load() take it.

#include <string_view>
#include <vector>

#include "autograd/parameter_store.hpp"
#include "nn/checkpoint.hpp"
#include "nn/optim/optimizer.hpp"

namespace engram {

/// What the name of an optimiser's state begins with in a checkpoint.
inline constexpr std::string_view kOptimizerPrefix = "optimizer/";

/// Everything that a store has in memory, sorted by name: parameters, frozen ones too, tables and buffers, under their
/// names; not tables in mapped files, which are files already. The tensors share the store's memory, so loading into
/// them fills the store. Where it keeps bf16 copies, ParameterStore::refresh_rounded() is due after that. Throws Error
/// before place().
std::vector<NamedTensor> named_tensors(const ParameterStore& store);

/// With it the state of an optimiser of that store, under "optimizer/": what a training needs to go on as if it had not
/// been interrupted, with the number of its next update. Before saving, Optimizer::bring_up_to_date() is due: tables
/// in the mode deferred need it, and nothing else is changed by it.
std::vector<NamedTensor> named_tensors(const ParameterStore& store, const Optimizer& optimizer);

}  // namespace engram
