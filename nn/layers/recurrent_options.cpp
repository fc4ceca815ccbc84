#include "nn/layers/recurrent_options.hpp"

#include <cmath>

#include "core/error.hpp"
#include "nn/layers/require_option.hpp"

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
  require_option(vocabulary >= 1, "vocabulary", "at least 1", vocabulary);
  require_option(width >= 1, "width", "at least 1", width);
  require_option(embedding_width >= 0, "embedding_width", "at least 1, or 0 for width", embedding_width);
  constexpr std::int64_t kHighestOrder = 64;
  require_option(order >= 1 && order <= kHighestOrder, "order", text("from 1 to ", kHighestOrder), order);
  require_option(decay > 0 && decay <= 1, "decay", "above 0 and at most 1", decay);
  require_option(!output_map || (encoder != RecurrentCell::lstm && readout == ReadoutKind::identity), "output_map",
                 text("false with the encoder ", name_of(encoder), " and the readout ", name_of(readout),
                      ", it belongs to others with the readout identity"),
                 "true");
  require_option(window >= 1, "window", "at least 1", window);
  require_option(parts >= 1, "parts", "at least 1", parts);
  require_option(output_width >= 0, "output_width", "at least 1, or 0 for width / parts", output_width);
  require_option(output_width == 0 || readout == ReadoutKind::n_gram, "output_width",
                 text("0 for the readout ", name_of(readout), ", it is an option of n_gram"), output_width);
  require_option(std::isfinite(init_range) && init_range > 0, "init_range", "above 0", init_range);
  require_option(logits_memory >= 1, "logits_memory", "at least 1 MiB", logits_memory);
  const std::int64_t n = state_parts();
  if (width % n != 0)
    throw UsageError(text("model: width must be a multiple of ", n, ", the parts into which ", name_of(readout),
                          " cuts a state, got ", width, "\n  ", nearest(width, n)));
}

}  // namespace engram
