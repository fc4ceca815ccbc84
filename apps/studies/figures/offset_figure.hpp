#pragma once
/// How much weight models give to what lies so many positions back: the mean by offset of several models in one plot.
/// Figure 3b of Daniluk et al.: "Frustratingly Short Attention Spans in Neural Language Modeling" (2017).

#include <cstdint>
#include <string>
#include <vector>

#include "apps/run/model/trained_model.hpp"
#include "apps/studies/attention/window_study.hpp"
#include "apps/studies/figures/figure.hpp"

namespace engram {

/// What one model gives.
struct ModelOffsets {
  std::string name;
  std::vector<double> offsets;  ///< positions from the present one, 0 or below, rising
  std::vector<double> weights;  ///< as many
  std::int64_t positions = 0;   ///< that they are the means of
};

/// Of a recurrent model: over positions with a full window. Throws UsageError where there was none.
ModelOffsets offsets_of(std::string name, const WindowMeans& means);
/// Of a model with heads: over all heads that see the context and the queries of the second half of a text. What lies
/// before the text is no offset. Throws UsageError as read_heads().
ModelOffsets mean_offsets(std::string name, TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                          const EvaluationWatch& watch = {});

/// A line for each model, the newest offset rightmost.
Figure offset_figure(const std::vector<ModelOffsets>& models);

}  // namespace engram
