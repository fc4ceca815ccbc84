#pragma once
/// The weights of every head of a model of any family while it reads a text: for maps and means of some of them.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/trained_model.hpp"

namespace engram {

/// Which head; all count from 0. A recurrent model with attention has one, whose window is the context.
struct HeadPlace {
  std::int64_t layer = 0, head = 0;
  bool of_slots = false;  ///< of the heads that see persistent slots only

  bool operator==(const HeadPlace&) const = default;
};

/// What a query gives its weight to.
struct HeadQuery {
  HeadPlace place;
  std::int64_t position = 0;        ///< of the query in the text
  std::span<const double> context;  ///< by distance, the nearest first; what lies before the text too
  std::span<const double> slots;
};

/// Reads a text from its start, in blocks of training.block. `found` is called for every query of every head, while the
/// spans live. Returns the distance of the first weight of a context: 0 where a query sees itself, else 1. Throws
/// UsageError for a model without weights to show, as WindowStudy does.
std::int64_t read_heads(TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                        const std::function<void(const HeadQuery&)>& found, const EvaluationWatch& watch = {});

}  // namespace engram
