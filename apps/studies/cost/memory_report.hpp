#pragma once
/// What `engram count --memory` says: what a run will keep in memory and what its steps will take, on a device, and,
/// for an amount of memory, the largest value of a key that it has room for.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/run/training/step_memory.hpp"

namespace engram {

/// How much a key may be raised so that a run fits.
struct FitReport {
  std::vector<std::string> keys;  ///< section.key, integers, all of which get the same value
  std::int64_t room = 0;          ///< bytes
  std::int64_t value = 0;         ///< the largest that fits; 0: not even the smallest does
  std::int64_t smallest = 0;      ///< that a configuration can have, of those that were tried
  std::int64_t bytes = 0;         ///< with `value`, or, where none fits, with the smallest
  std::int64_t next = 0;          ///< the next larger one; 0: there is none
  std::int64_t next_bytes = 0;
  std::string refused;  ///< why there is no larger one, a sentence; empty: it does not fit
};

struct MemoryReport {
  MemorySetting setting;
  std::int64_t batch = 0, block = 0, split = 0;
  StepMemory memory;
  std::optional<FitReport> fit;
};

/// Counts a configuration whose vocabulary is known (count_step_memory). Where there are several ranks, of the first,
/// with the pieces that they need (split_for_ranks).
MemoryReport memory_report(const RunConfig& config, const data::ArticleSplit& training, const MemorySetting& setting);

/// The largest multiple of `unit`, which is at least 1, whose run has at most report.room bytes: `bytes_of` says how
/// many it has and grows with the value, or throws UsageError for a value that a configuration cannot have. There may
/// be such values between others, as where a width must be a multiple of heads: the nearest others up to 256 units away
/// are taken in their place. Fills the report, whose keys and room are given. Throws what `bytes_of` does for `unit`
/// itself where no value can be had.
void find_fit(FitReport& report, std::int64_t unit, const std::function<std::int64_t(std::int64_t value)>& bytes_of);

/// "24GiB", "80GB", "512MiB" or a number of bytes, above 0. Throws UsageError saying what it must be for other text.
std::int64_t parse_bytes(const std::string& text);

std::string table_of(const MemoryReport& report);
nlohmann::json json_of(const MemoryReport& report);

}  // namespace engram
