#pragma once
/// What `engram spans` says of a trained model.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/studies/spans/head_spans.hpp"
#include "apps/studies/spans/span_cost.hpp"
#include "apps/studies/spans/span_history.hpp"

namespace engram {

struct SpanReport {
  std::string name;        ///< of the model, in the picture's title
  std::string checkpoint;  ///< its file
  std::int64_t step = 0;
  AllAttentionOptions model;
  std::vector<LayerSpans> layers;
  SpanStatistics statistics;
  std::optional<std::vector<SpanMoment>> history;  ///< none: not asked for
  std::optional<SpanCost> cost;                    ///< likewise
};

/// A line for every head and for every layer; then the history, of which 30 moments at most are shown, and the cost.
std::string table_of(const SpanReport& report);
/// Lines `layer,head,zeta,span_positions,visible_positions`, or of a history `step,layer,head,visible_positions`.
std::string csv_of(const SpanReport& report);
nlohmann::json json_of(const SpanReport& report);
/// A map of layers by heads, each cell with the positions that the head sees; of a history also the mean of every layer
/// over the steps below it.
std::string svg_of(const SpanReport& report);

}  // namespace engram
