#pragma once
/// What a WeightTransfer took, for people and for the log.

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/run/transfer/weight_transfer.hpp"

namespace engram {

/// Names of tensors in fewer words: "layers.2.memory.*" for all of a part of a model whose names are `all`, which have
/// them, "layers.0-3.query" for one tensor of neighbouring layers. In the order of the names.
std::vector<std::string> grouped_names(const std::vector<std::string>& names, const std::vector<std::string>& all);

/// A few lines of at most `width` columns; long lists end with how many more there are.
std::string table_of(const WeightTransfer& transfer, std::size_t width);
/// What the one who asked for it should know before much is computed: that little of what both models have was taken,
/// as shapes are others, or that no symbol was, as the source's have no names.
std::vector<std::string> warnings_of(const WeightTransfer& transfer);
/// Logs the table and the warnings.
void tell(const WeightTransfer& transfer, std::size_t width);
/// All of it, with every name: what a checkpoint (metadata_keys::kFrom) and the log keep.
nlohmann::json json_of(const WeightTransfer& transfer);

}  // namespace engram
