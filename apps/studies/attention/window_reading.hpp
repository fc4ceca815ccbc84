#pragma once
/// The texts and splits that a study of windows reads.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "apps/data/data_set.hpp"
#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/studies/attention/window_report.hpp"

namespace engram {

/// A split, and what of it is kept as rows.
struct WindowReading {
  std::string data, split;              ///< folder and name
  std::int64_t tokens = 0;              ///< of the split, the first ones; 0: all
  std::int64_t rows = 0;                ///< the first positions of the article, or of a split without articles
  std::optional<std::int64_t> article;  ///< the first being 0; none given: the first
};

/// The windows of a recurrent model over a text from its start, the first `rows` positions kept.
WindowReport read_windows(TrainedModel& trained, std::span<const std::int32_t> tokens, std::int64_t rows,
                          const EvaluationWatch& watch = {});
/// The windows over a split of the data, articles or parts of a text side by side. Throws UsageError for an article
/// that is not there.
WindowReport read_windows(TrainedModel& trained, const data::DataSet& data, const WindowReading& reading,
                          const EvaluationWatch& watch = {});

}  // namespace engram
