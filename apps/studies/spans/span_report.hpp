#pragma once
/// The spans of a model as an SVG picture.

#include <string>
#include <vector>

#include "apps/studies/spans/head_spans.hpp"
#include "apps/studies/spans/span_history.hpp"

namespace engram {

/// A map of layers by heads, each cell with the positions that the head sees; with a history also the mean of every
/// layer over the steps below it. `name`: of the model, for the title.
std::string draw_spans(const AllAttentionOptions& model, const std::vector<LayerSpans>& layers, const std::string& name,
                       const std::vector<SpanMoment>& history);

}  // namespace engram
