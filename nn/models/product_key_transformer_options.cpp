#include "nn/models/product_key_transformer_options.hpp"

#include "core/error.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {

void ProductKeyTransformerOptions::check() const {
  using namespace option_limits;
  constexpr OptionRules rules("model: ");
  rules.within("vocabulary", vocabulary, 1, kRows);
  rules.within("layers", layers, 1, kLayers);
  rules.within("width", width, 1, kWidth);
  rules.require(heads >= 1 && width % heads == 0, "heads", text("a divisor of width ", width), heads);
  rules.within("inner", inner, 0, kRows, ", 0 for 4 width");
  rules.within("position_rows", position_rows, 1, kPositions);
  rules.dropout("dropout", dropout);
  rules.dropout("attention_dropout", attention_dropout);
  rules.within("norm_epsilon", norm_epsilon, kSmallest, kLargest);
  rules.require(attention_memory >= 0 && attention_memory <= kMebibytes, "attention_memory", "from 0 to 2^40",
                attention_memory);
  memories.check(width, layers);
}

}  // namespace engram
