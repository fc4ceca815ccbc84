#pragma once
/// The mean of spans that are computed for every query, over the queries of some text: what reports show of them.

#include <cstdint>
#include <vector>

#include "core/backend.hpp"
#include "nn/models/all_attention.hpp"

namespace engram {

class SpanMeans {
 public:
  /// Zeta of every query of a block, [B, M, H] for each layer, read from the device; nothing unless the model's spans
  /// are dynamic.
  static std::vector<std::vector<double>> read(const AllAttentionModel& model, const ModelTrace& trace,
                                               Backend& backend);
  /// Takes what read() returned of a block of this model, or of some of its rows.
  void add(const AllAttentionModel& model, const std::vector<std::vector<double>>& zetas);
  /// Hands the means to the model's spans, if there was any block.
  void give_to(AllAttentionModel& model) const;

 private:
  std::vector<std::vector<double>> sums_;  // of zeta, by layer and head
  std::int64_t queries_ = 0;
};

}  // namespace engram
