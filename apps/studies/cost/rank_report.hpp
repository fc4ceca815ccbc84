#pragma once
/// What `engram count --ranks` says of a configuration on several ranks: what each keeps in memory and sends, and, for
/// a link of some speed, how long a step would take. A prediction: docs/reference/several-processes-cost.md.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/run/cost/rank_memory.hpp"
#include "apps/run/cost/rank_traffic.hpp"

namespace engram {

struct RankQuestion {
  int ranks = 1;
  double gigabits = 0;      ///< 10^9 bits a second of each rank's link, each way; 0: not asked
  double latency = 20;      ///< microseconds
  double step_seconds = 0;  ///< of one rank; 0: not known
};

struct RankReport {
  RankQuestion question;
  std::int64_t asked_split = 1;              ///< the configuration's
  std::int64_t split = 1;                    ///< pieces of a batch on all ranks together
  std::int64_t tokens = 0;                   ///< of a step
  RankMemory alone, first, largest;          ///< of one rank without others, of rank 0, and of the rank that has most
  RankTraffic first_traffic;                 ///< of rank 0
  RankTraffic traffic;                       ///< of the rank that sends most
  std::optional<StepPrediction> prediction;  ///< with a link; without step_seconds only its seconds on that
};

/// What a rank keeps from step to step, under names for people and for programs.
struct KeptMemory {
  const char* name;
  const char* json_name;
  std::int64_t bytes;
};
std::vector<KeptMemory> kept_memory(const RankMemory& memory);

/// `config`: its vocabulary is known. Throws UsageError where the ranks cannot share the batch (split_for_ranks()).
RankReport rank_report(const RunConfig& config, const RankQuestion& question);

std::string table_of(const RankReport& report);
nlohmann::json json_of(const RankReport& report);

}  // namespace engram
