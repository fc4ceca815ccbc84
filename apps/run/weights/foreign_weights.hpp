#pragma once
/// Weights of another program in a file of one of the forms that are read: safetensors, or PyTorch's.

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "apps/run/weights/foreign_tensor.hpp"
#include "apps/run/weights/pytorch/pickle_value.hpp"
#include "core/files/stored_tensor.hpp"

namespace engram {

struct ForeignWeights {
  std::filesystem::path path;
  std::map<std::string, ForeignTensor, std::less<>> tensors;
  Metadata metadata = {};              ///< of safetensors
  const PickleNode* module = nullptr;  ///< the model itself, where a file of PyTorch has it as a whole
  std::shared_ptr<const void> file;    ///< what the rest refers to
};

/// Reads the form that the file begins as. Throws FileError as SafetensorsFile, PytorchFile and read_module_state() do,
/// and UsageError for a checkpoint or a run of Engram's own, which needs no import.
ForeignWeights read_foreign_weights(const std::filesystem::path& path);

/// The first element in which two tensors of one shape differ, in any bit of their values; -1: none, or no floats.
std::int64_t first_difference(const ForeignTensor& a, const ForeignTensor& b);

/// Elements of a tensor of a file as those of a parameter, of dtype f32 or f64, from element `first` on.
TensorSource parameter_source(std::string name, DType dtype, const Shape& shape, const ForeignTensor& from,
                              std::size_t first);

}  // namespace engram
