#include "nn/models/product_key_transformer_options.hpp"

#include "core/error.hpp"
#include "nn/layers/require_option.hpp"

namespace engram {

void ProductKeyTransformerOptions::check() const {
  using namespace option_limits;
  require_within("vocabulary", vocabulary, 1, kRows);
  require_within("layers", layers, 1, kLayers);
  require_within("width", width, 1, kWidth);
  require_option(heads >= 1 && width % heads == 0, "heads", text("a divisor of width ", width), heads);
  require_within("inner", inner, 0, kRows, ", 0 for 4 width");
  require_within("position_rows", position_rows, 1, kPositions);
  require_dropout("dropout", dropout);
  require_dropout("attention_dropout", attention_dropout);
  require_within("norm_epsilon", norm_epsilon, kSmallest, kLargest);
  require_option(attention_memory >= 0 && attention_memory <= kMebibytes, "attention_memory", "from 0 to 2^40",
                 attention_memory);
  memories.check(width, layers);
}

}  // namespace engram
