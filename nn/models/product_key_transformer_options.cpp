#include "nn/models/product_key_transformer_options.hpp"

#include <limits>

#include "core/error.hpp"
#include "nn/layers/require_option.hpp"

namespace engram {

void ProductKeyTransformerOptions::check() const {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max() / 4, kWidest = std::int64_t{1} << 30;
  require_option(vocabulary >= 1, "vocabulary", "at least 1", vocabulary);
  require_option(layers >= 1, "layers", "at least 1", layers);
  require_option(width >= 1 && width <= kWidest, "width", text("from 1 to ", kWidest), width);
  require_option(heads >= 1 && width % heads == 0, "heads", text("a divisor of width ", width), heads);
  require_option(inner >= 0, "inner", "at least 0, 0 for 4 width", inner);
  require_option(position_rows >= 1 && position_rows <= kLongest, "position_rows", text("from 1 to ", kLongest),
                 position_rows);
  require_option(dropout >= 0 && dropout < 1, "dropout", "in [0, 1)", dropout);
  require_option(attention_dropout >= 0 && attention_dropout < 1, "attention_dropout", "in [0, 1)", attention_dropout);
  require_option(norm_epsilon > 0, "norm_epsilon", "above 0", norm_epsilon);
  require_option(attention_memory >= 0 && attention_memory <= std::int64_t{1} << 40, "attention_memory",
                 "from 0 to 2^40", attention_memory);
  memories.check(width, layers);
}

}  // namespace engram
