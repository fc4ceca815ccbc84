#pragma once

#include <string>

#include "apps/run/config/config_key.hpp"
#include "apps/run/config/run_config.hpp"
#include "nn/models/model_options.hpp"

namespace engram {

/// A valid configuration in which every key is looked at: the keys' examples and defaults, with a memory where the
/// family may have one.
RunConfig whole_config(ModelFamily family);

/// What a value of the key may be beside its type: the names of a choice, "a | b", or the bounds of a number in such a
/// configuration, "from 1 to 4096"; empty: all that can be written, and of lists, which depend on other keys.
std::string allowed_values(const ConfigKey& key, const RunConfig& whole);

/// A whole configuration of a family, to be saved, changed and trained: of every key what it means and what it may be,
/// with its default, or a value of a small model and a short run where it has none. What would be wrong or without
/// effect with them is a comment.
std::string config_template(ModelFamily family);

}  // namespace engram
