#pragma once
/// What a trained run loses on a split, block by block, kept beside the study so that a run is read once.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/studies/sweeps/sweep_runs.hpp"
#include "apps/terminal/work_progress.hpp"

namespace engram {

/// Blocks are the split's tokens 0 to block - 1, block to 2 block - 1, and so on; what is left at the end is none.
struct HeldOutLosses {
  std::vector<std::int64_t> scored;  ///< tokens of every block that were scored
  std::vector<double> sums;          ///< nats, of these
  std::int64_t all_scored = 0;       ///< of the whole split
  double all_sum = 0;

  double mean() const { return all_sum / static_cast<double>(all_scored); }  ///< nats per token
};

/// Of the newest checkpoint of a run, read as `engram evaluate` reads a split. Taken from `kept` where that was written
/// for the same checkpoint, data, split and block; otherwise measured and written there. Throws FileError for what
/// cannot be read or written, Interrupted when `stop` says true before the model is read.
HeldOutLosses held_out_losses(const SweepRun& run, const data::DataSet& data, std::string_view split,
                              std::int64_t block, const std::filesystem::path& kept, int threads,
                              WorkProgress& progress, const std::function<bool()>& stop);

}  // namespace engram
