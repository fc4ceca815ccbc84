#pragma once
/// Two-layer models so small that every number of a step can be seen.

#include <string>

#include "nn/models/model_options.hpp"

namespace engram {

/// A whole configuration as TOML, for parse_run_config(): layers of a handful of numbers, a vocabulary of 8 symbols,
/// one block of a few tokens, nothing random but the weights.
std::string small_model(ModelFamily family);

}  // namespace engram
