#pragma once
/// Where all heads of a model look while it reads a text, as maps small enough for a page.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/studies/attention/attention_study.hpp"

namespace engram {

/// One head; the first of everything being 0.
struct AttentionMap {
  std::int64_t layer = 0, head = 0;
  bool sees_context = true, sees_slots = false;
  double entropy = 0;     ///< bits, mean over the queries of the second half of the text
  double distance = 0;    ///< positions, mean of the weight on the context
  double slot_share = 0;  ///< of the weight, on persistent slots
  double most = 0;        ///< the largest of the weights that the cells hold
  /// [rows, columns] of AttentionMaps: 255 sqrt(weight / most), rounded; distances first, the nearest first, then
  /// slots.
  std::vector<std::uint8_t> cells;
  std::vector<double> by_distance;  ///< mean weight, from the nearest distance on
  std::vector<SlotUse> slots;       ///< that it uses most, with the queries that made it look there
};

struct AttentionMaps {
  std::string text;                 ///< where it is from
  std::vector<std::string> tokens;  ///< that were read, in a visible form
  bool words = false;               ///< tokens are words, between which there is space
  std::int64_t rows = 0;            ///< queries in the cells: the last ones of the text
  std::int64_t nearest = 1;         ///< distance of the first column: 0 where a query sees itself
  std::int64_t window = 0;          ///< tokens that are read from nothing each time; 0: the text is one stream
  /// Columns, and how many distances or slots each is: its weight is the sum of theirs, of slots the largest.
  std::int64_t distance_columns = 0, distance_bin = 1, slot_columns = 0, slot_bin = 1;
  std::vector<AttentionMap> heads;
};

/// At least one token. Throws UsageError for a model without attention to show, see has_maps().
AttentionMaps read_maps(TrainedModel& trained, const std::vector<std::int32_t>& tokens, std::string text,
                        const EvaluationWatch& watch = {});
/// Whether a model has attention that can be shown; else `reason` says why not.
bool has_maps(const ModelOptions& options, std::string& reason);

nlohmann::json json_of(const AttentionMaps& maps);

}  // namespace engram
