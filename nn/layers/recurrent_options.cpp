#include "nn/layers/recurrent_options.hpp"

#include "core/error.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {
namespace {

/// The two multiples of n around a width, for messages.
std::string nearest(std::int64_t width, std::int64_t n) {
  const std::int64_t below = width / n * n;
  return below == 0 ? text("the nearest is ", n) : text("the nearest are ", below, " and ", below + n);
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
  return readout == ReadoutKind::n_gram && output_width > 0 ? output_width : width / state_parts();
}

std::int64_t RecurrentOptions::readout_reach() const {
  if (attends()) return window;
  if (readout == ReadoutKind::recurrent_memory) return window - 1;
  return readout == ReadoutKind::n_gram ? parts - 1 : 0;
}

void RecurrentOptions::check() const {
  using namespace option_limits;
  constexpr OptionRules rules("model: ");
  rules.within("vocabulary", vocabulary, 1, kRows);
  rules.within("width", width, 1, kWidth);
  rules.within("embedding_width", embedding_width, 0, kWidth, ", 0 for width");
  rules.within("order", order, 1, 64);
  rules.require(decay > 0 && decay <= 1, "decay", "above 0 and at most 1", decay);
  rules.require(!output_map || encoder != RecurrentCell::lstm, "output_map", "false with the encoder lstm", "true");
  rules.require(!output_map || readout == ReadoutKind::identity, "output_map",
                text("false with the readout ", name_of(readout), ", it is for identity alone"), "true");
  rules.within("window", window, 1, kPositions);
  rules.within("parts", parts, 1, kWidth);
  rules.within("output_width", output_width, 0, kWidth, ", 0 for width / parts");
  rules.require(output_width == 0 || readout == ReadoutKind::n_gram, "output_width",
                text("0 for the readout ", name_of(readout), ", it is an option of n_gram"), output_width);
  rules.within("init_range", init_range, kSmallest, kLargestStart);
  rules.require(logits_memory >= 1 && logits_memory <= kMebibytes, "logits_memory", "from 1 to 2^40 MiB",
                logits_memory);
  const std::int64_t n = state_parts();
  if (width % n != 0)
    throw UsageError(text("model: width must be a multiple of ", n, ", the parts into which ", name_of(readout),
                          " cuts a state, got ", width, "\n  ", nearest(width, n)));
}

}  // namespace engram
