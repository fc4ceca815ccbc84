#pragma once
/// The tensors of a model in a file of PyTorch, by the names of its state dict.

#include <map>
#include <string>

#include "apps/run/weights/pytorch/pytorch_file.hpp"

namespace engram {

struct ModuleState {
  std::map<std::string, ForeignTensor, std::less<>> tensors;
  /// The model itself, where the file has it as a whole; null: it has a state dict.
  const PickleNode* module = nullptr;
};

/// The file's value is a state dict; a checkpoint, which has one as "model", "state_dict" or "model_state_dict"; or a
/// whole model, whose parameters and buffers are then named as its state dict names them. "module.", which all names of
/// a model on several cards begin with, is left out. Valid as long as the file. Throws FileError for anything else.
ModuleState read_module_state(const PytorchFile& file);

}  // namespace engram
