#pragma once

#include <string>

#include "nn/models/model_options.hpp"

namespace engram {

/// A whole configuration of a family, to be saved, changed and trained: of every key what it means and what it may be,
/// with its default, or a value of a small model and a short run where it has none. What would be wrong or without
/// effect with them is a comment.
std::string config_template(ModelFamily family);

}  // namespace engram
