#include "nn/layers/recurrent_options.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "nn/layers/vocabulary_clusters.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {
namespace {

/// The two multiples of n around a width, for messages.
std::string nearest(std::int64_t width, std::int64_t n) {
  const std::int64_t below = width / n * n;
  return below == 0 ? text("the nearest is ", n) : text("the nearest are ", below, " and ", below + n);
}

/// Inputs that a position of a qrnn sees: their products with their weights are one.
constexpr std::int64_t kTaps = 64;

/// Both ends.
void check_tables(const RecurrentOptions& options) {
  constexpr OptionRules rules("model: ");
  rules.within("divisor", options.divisor, 1, option_limits::kWidth);
  const std::int64_t input = options.vector_width(), output = options.hidden_width();
  if (options.tie_tables && input != output)
    throw UsageError(
        text("model: embedding_width must be ", output, " with tie_tables, what the softmax sees, got ", input));
  VocabularyClusters::check(options.cutoffs, options.vocabulary, std::min(input, output), options.divisor);
}

}  // namespace

std::int64_t RecurrentOptions::state_parts() const {
  switch (readout) {
    case ReadoutKind::key_value:
      return 2;
    case ReadoutKind::key_value_predict:
      return 3;
    case ReadoutKind::n_gram:
      return parts;
    default:
      return 1;
  }
}

std::int64_t RecurrentOptions::hidden_width() const {
  if (readout == ReadoutKind::n_gram && output_width > 0) return output_width;
  return width / std::max<std::int64_t>(1, state_parts());  // asked before `parts` is checked too
}

std::int64_t RecurrentOptions::readout_reach() const {
  if (attends()) return window;
  if (readout == ReadoutKind::recurrent_memory) return window - 1;
  return readout == ReadoutKind::n_gram ? parts - 1 : 0;
}

std::int64_t RecurrentOptions::longest_reach() const {
  const std::int64_t layer = encoder == RecurrentCell::qrnn ? std::max(input_reach(0), input_reach(layers - 1)) : 0;
  return std::max({state_reach(), std::int64_t{has_cells()}, layer, readout_reach()});
}

void RecurrentOptions::check() const {
  using namespace option_limits;
  constexpr OptionRules rules("model: ");
  rules.within("vocabulary", vocabulary, 1, kRows);
  rules.within("width", width, 1, kWidth);
  rules.within("embedding_width", embedding_width, 0, kWidth, ", 0 for width");
  rules.within("layers", layers, 1, kLayers);
  rules.within("inner_width", inner_width, 0, kWidth, ", 0 for width");
  rules.within("order", order, 1, 64);
  rules.require(decay > 0 && decay <= 1, "decay", "above 0 and at most 1", decay);
  rules.require(!output_map || !has_cells(), "output_map", text("false with the encoder ", name_of(encoder)), "true");
  rules.require(!output_map || readout == ReadoutKind::identity, "output_map",
                text("false with the readout ", name_of(readout), ", it is for identity alone"), "true");
  rules.within("taps", taps, 1, kTaps);
  rules.within("inner_taps", inner_taps, 0, kTaps, ", 0 for taps");
  rules.within("window", window, 1, kPositions);
  rules.within("parts", parts, 1, kWidth);
  rules.within("output_width", output_width, 0, kWidth, ", 0 for width / parts");
  rules.require(output_width == 0 || readout == ReadoutKind::n_gram, "output_width",
                text("0 for the readout ", name_of(readout), ", it is an option of n_gram"), output_width);
  for (const auto& [name, rate] : {std::pair<std::string_view, double>{"word_dropout", word_dropout},
                                   {"input_dropout", input_dropout},
                                   {"layer_dropout", layer_dropout},
                                   {"output_dropout", output_dropout},
                                   {"weight_dropout", weight_dropout}})
    rules.dropout(name, rate);
  rules.within("init_range", init_range, kSmallest, kLargestStart);
  rules.require(logits_memory >= 1 && logits_memory <= kMebibytes, "logits_memory", "from 1 to 2^40 MiB",
                logits_memory);
  const std::int64_t n = state_parts();
  if (width % n != 0)
    throw UsageError(text("model: width must be a multiple of ", n, ", the parts into which ", name_of(readout),
                          " cuts a state, got ", width, "\n  ", nearest(width, n)));
  check_tables(*this);
}

}  // namespace engram
