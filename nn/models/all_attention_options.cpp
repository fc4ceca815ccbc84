#include "nn/models/all_attention_options.hpp"

#include "core/error.hpp"
#include "nn/layers/vocabulary_clusters.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {

void AllAttentionOptions::check() const {
  using namespace option_limits;
  constexpr OptionRules rules("model: ");
  rules.within("vocabulary", vocabulary, 1, kRows);
  rules.within("layers", layers, 1, kLayers);
  rules.within("width", width, 1, kWidth);
  rules.require(heads >= 1 && width % heads == 0, "heads", text("a divisor of width ", width), heads);
  rules.require(memory_mode != MemoryMode::head_split || heads % 2 == 0, "heads", "even for memory_mode head_split",
                heads);
  const auto mode_rule = [this](bool used, std::string_view otherwise) {
    return used ? text("from 1 to ", kRows, " for memory_mode ", name_of(memory_mode), otherwise)
                : text("0 for memory_mode ", name_of(memory_mode));
  };
  const bool second = has_second_sublayer(memory_mode), persistent = has_slots(memory_mode);
  const auto in_mode = [](bool used, std::int64_t units) { return used ? units >= 1 && units <= kRows : units == 0; };
  rules.require(in_mode(second, inner), "inner", mode_rule(second, ""), inner);
  rules.require(in_mode(persistent, slots), "slots",
                mode_rule(persistent, memory_mode == MemoryMode::all ? " (use memory_mode none for 0)" : ""), slots);
  rules.within("max_span", max_span, 1, kPositions);
  rules.within("ramp", ramp, 1, 1 << 20);
  rules.require(span_init >= 0 && span_init <= 1, "span_init", "in [0, 1]", span_init);
  rules.require(mask_offset == 0 || mask_offset == 1, "mask_offset", "0 or 1", mask_offset);
  rules.dropout("dropout", dropout);
  rules.dropout("embedding_dropout", embedding_dropout);
  VocabularyClusters::check(cutoffs, vocabulary, width);
  rules.require(attention_memory >= 0 && attention_memory <= kMebibytes, "attention_memory", "from 0 to 2^40",
                attention_memory);
  memories.check(width, layers);
  if (memories.any() && memory_mode != MemoryMode::transformer && memories.placement != MemoryPlacement::after)
    throw UsageError(text("product_key: placement must be after for memory_mode ", name_of(memory_mode),
                          ", which has no feed-forward sublayer, got ", name_of(memories.placement)));
}

}  // namespace engram
