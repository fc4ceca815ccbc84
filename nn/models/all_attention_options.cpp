#include "nn/models/all_attention_options.hpp"

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "nn/layers/require_option.hpp"
#include "nn/layers/vocabulary_clusters.hpp"

namespace engram {

void AllAttentionOptions::check() const {
  require_option(vocabulary >= 1, "vocabulary", "at least 1", vocabulary);
  require_option(layers >= 1, "layers", "at least 1", layers);
  require_option(width >= 1, "width", "at least 1", width);
  require_option(heads >= 1 && width % heads == 0, "heads", text("a divisor of width ", width), heads);
  require_option(memory_mode != MemoryMode::head_split || heads % 2 == 0, "heads", "even for memory_mode head_split",
                 heads);
  const auto mode_rule = [this](bool used, std::string_view otherwise) {
    return used ? text("at least 1 for memory_mode ", name_of(memory_mode), otherwise)
                : text("0 for memory_mode ", name_of(memory_mode));
  };
  const bool second = has_second_sublayer(memory_mode), persistent = has_slots(memory_mode);
  require_option(second ? inner >= 1 : inner == 0, "inner", mode_rule(second, ""), inner);
  require_option(persistent ? slots >= 1 : slots == 0, "slots",
                 mode_rule(persistent, memory_mode == MemoryMode::all ? " (use memory_mode none for 0)" : ""), slots);
  constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max() / 4, kWidest = 1 << 20;
  require_option(max_span >= 1 && max_span <= kLongest, "max_span", text("from 1 to ", kLongest), max_span);
  require_option(ramp >= 1 && ramp <= kWidest, "ramp", text("from 1 to ", kWidest), ramp);
  require_option(span_init >= 0 && span_init <= 1, "span_init", "in [0, 1]", span_init);
  require_option(mask_offset == 0 || mask_offset == 1, "mask_offset", "0 or 1", mask_offset);
  require_option(dropout >= 0 && dropout < 1, "dropout", "in [0, 1)", dropout);
  require_option(embedding_dropout >= 0 && embedding_dropout < 1, "embedding_dropout", "in [0, 1)", embedding_dropout);
  VocabularyClusters::check(cutoffs, vocabulary, width);
  require_option(attention_memory >= 0 && attention_memory <= std::int64_t{1} << 40, "attention_memory", "at least 0",
                 attention_memory);
  memories.check(width, layers);
  if (memories.any() && memory_mode != MemoryMode::transformer && memories.placement != MemoryPlacement::after)
    throw UsageError(text("product_key: placement must be after for memory_mode ", name_of(memory_mode),
                          ", which has no feed-forward sublayer, got ", name_of(memories.placement)));
}

std::string_view name_of(SpanKind kind) {
  return kind == SpanKind::adaptive ? "adaptive" : kind == SpanKind::fixed ? "fixed" : "dynamic";
}
std::string_view name_of(PositionValues kind) {
  return kind == PositionValues::none ? "none" : kind == PositionValues::shared ? "shared" : "own";
}
std::string_view name_of(TableInit init) { return init == TableInit::unit ? "unit" : "scaled"; }
std::string_view name_of(Pad pad) { return pad == Pad::mask ? "mask" : "attend_zero"; }
std::string_view name_of(RampGradient mode) {
  return mode == RampGradient::inclusive ? "inclusive" : mode == RampGradient::right ? "right" : "open";
}

}  // namespace engram
