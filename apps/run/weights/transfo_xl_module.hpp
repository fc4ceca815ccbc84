#pragma once
/// What a Transformer-XL of the original PyTorch program says of itself, where it was saved as a whole (model.pt).

#include <nlohmann/json_fwd.hpp>

#include "apps/run/weights/pytorch/pickle_value.hpp"

namespace engram {

/// The attributes of the module that a config.json has too, under its keys. What the module does not have is left out.
nlohmann::json transfo_xl_config_of(const PickleNode& module);

}  // namespace engram
