#pragma once
/// What `engram prepare` says of what it made.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/data/prepare/summary.hpp"

namespace engram::data {

/// A line for each split; for words with a column of line ends or articles, for subwords with one of words.
std::string table_of(const PrepareSummary& summary);
nlohmann::json json_of(const PrepareSummary& summary);

}  // namespace engram::data
