#include "nn/models/all_attention_options.hpp"

#include "core/error.hpp"
#include "nn/layers/require_option.hpp"
#include "nn/layers/vocabulary_clusters.hpp"

namespace engram {

void AllAttentionOptions::check() const {
  using namespace option_limits;
  require_within("vocabulary", vocabulary, 1, kRows);
  require_within("layers", layers, 1, kLayers);
  require_within("width", width, 1, kWidth);
  require_option(heads >= 1 && width % heads == 0, "heads", text("a divisor of width ", width), heads);
  require_option(memory_mode != MemoryMode::head_split || heads % 2 == 0, "heads", "even for memory_mode head_split",
                 heads);
  const auto mode_rule = [this](bool used, std::string_view otherwise) {
    return used ? text("from 1 to ", kRows, " for memory_mode ", name_of(memory_mode), otherwise)
                : text("0 for memory_mode ", name_of(memory_mode));
  };
  const bool second = has_second_sublayer(memory_mode), persistent = has_slots(memory_mode);
  const auto in_mode = [](bool used, std::int64_t units) { return used ? units >= 1 && units <= kRows : units == 0; };
  require_option(in_mode(second, inner), "inner", mode_rule(second, ""), inner);
  require_option(in_mode(persistent, slots), "slots",
                 mode_rule(persistent, memory_mode == MemoryMode::all ? " (use memory_mode none for 0)" : ""), slots);
  require_within("max_span", max_span, 1, kPositions);
  require_within("ramp", ramp, 1, 1 << 20);
  require_option(span_init >= 0 && span_init <= 1, "span_init", "in [0, 1]", span_init);
  require_option(mask_offset == 0 || mask_offset == 1, "mask_offset", "0 or 1", mask_offset);
  require_dropout("dropout", dropout);
  require_dropout("embedding_dropout", embedding_dropout);
  VocabularyClusters::check(cutoffs, vocabulary, width);
  require_option(attention_memory >= 0 && attention_memory <= kMebibytes, "attention_memory", "from 0 to 2^40",
                 attention_memory);
  memories.check(width, layers);
  if (memories.any() && memory_mode != MemoryMode::transformer && memories.placement != MemoryPlacement::after)
    throw UsageError(text("product_key: placement must be after for memory_mode ", name_of(memory_mode),
                          ", which has no feed-forward sublayer, got ", name_of(memories.placement)));
}

}  // namespace engram
