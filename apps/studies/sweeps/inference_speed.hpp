#pragma once
/// How fast the variants of a sweep read, so that it can stand beside how well they do.

#include <functional>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/studies/sweeps/sweep_result.hpp"

namespace engram {

/// Times the newest checkpoint of one run of each variant, of its first seed that is done, and gives what it finds to
/// all runs of the variant that are done: inference_tokens, and inference_words where the data know their words. All of
/// it at one time, in rounds in which the variants take turns, so that all see the same machine: the figure of a round
/// is Evaluation::tokens_per_second() over some blocks of the validation split, behind those in which the past fills,
/// read as the scores were; that of a variant is the median of the rounds. One model is in memory at a time. A variant
/// that cannot be timed is said, and has no figure. Throws Interrupted when `stop` says so.
void time_variants(const SweepOptions& options, const data::DataSet& data, const std::vector<SweepRun>& runs,
                   const std::function<bool()>& stop, std::vector<RunResult>& results);

}  // namespace engram
