#pragma once
/// `engram count --choose-cutoffs`: the cut-offs with which adaptive input and softmax take the least time on this
/// machine, for the words of a text; what is measured for it, and whether it holds.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/data/files/token_view.hpp"
#include "apps/run/config/run_config.hpp"
#include "apps/run/model/runtime.hpp"

namespace engram {

struct CutoffQuestion {
  RunConfig config;          ///< its vocabulary is known; of a family with clusters
  std::size_t clusters = 0;  ///< that the vocabulary is cut into, at least 2; 0: as many as the config has, or 4
  int rounds = 5;            ///< timed steps of every size, and of both choices
};

/// Cut-offs, what their steps were predicted to take and what they took.
struct TimedCutoffs {
  std::vector<std::int64_t> cutoffs;
  std::vector<double> shares;   ///< of the text's words, in the clusters
  double predicted = 0;         ///< seconds of both ends in a step
  std::vector<double> seconds;  ///< of every round, ascending
  double median() const { return seconds[seconds.size() / 2]; }
};

struct CutoffReport {
  std::string config, data;  ///< files, left to who has them
  std::string device;
  std::int64_t vocabulary = 0;
  std::int64_t tokens = 0;           ///< of a step: of a piece, where training.split cuts a batch
  std::vector<std::int64_t> widths;  ///< of the clusters' vectors
  int points = 0;                    ///< sizes that were timed
  TimedCutoffs chosen;
  std::optional<TimedCutoffs> own;  ///< the config's, where it has as many clusters
};

/// Times clusters of many sizes, chooses, and times the choice and the config's own cut-offs in turns over blocks of
/// the text. `training`: words, ordered by frequency. `progress` is told of steps that are done, of all. Throws
/// UsageError where the family has no clusters, and where they would be too many for the vocabulary, the width or the
/// text.
CutoffReport choose_cutoffs(const CutoffQuestion& question, const data::TokenView& training, Runtime& runtime,
                            const std::function<void(std::int64_t done, std::int64_t all)>& progress);

std::string table_of(const CutoffReport& report);
nlohmann::json json_of(const CutoffReport& report);

}  // namespace engram
