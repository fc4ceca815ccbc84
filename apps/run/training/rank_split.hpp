#pragma once
/// In how many pieces several ranks compute a batch.

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/run/config/run_config.hpp"

namespace engram {

/// The least number of pieces that so many ranks can share, at least as many as `asked`: what split_for_ranks() makes
/// of a training.split for any batch.
std::int64_t pieces_for_ranks(std::int64_t asked, int ranks);

/// training.split for so many ranks. Every rank has as many pieces, a power of two, so that gradients are added up in
/// the order in which one rank would add them, and the numbers do not depend on the ranks. Where the configuration's
/// split is none of that, it is the next larger one. One rank: the configuration's. Throws UsageError where the batch
/// is no multiple of it.
std::int64_t split_for_ranks(const RunConfig& config, int ranks);

/// A run that starts anew in a folder where one with another split has left its config.toml, but no checkpoint: what to
/// warn of, as the numbers will not be those of that run to the last bit. Empty where the split is the same, or there
/// is no such file that can be read.
std::string other_split_before(const std::filesystem::path& config_file, const RunConfig& config);

}  // namespace engram
