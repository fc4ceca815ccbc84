#include "apps/studies/tape/small_models.hpp"

#include "core/error.hpp"

namespace engram {
namespace {

// Sizes differ, so that a shape says which is which: of this one 2 heads of depth 3, 4 slots, 5 tokens, width 6, a span
// of 7 positions, 8 symbols. A page shows numbers in at most 8 columns.
constexpr std::string_view kAllAttention = R"([model]
family = "all_attention"
vocabulary = 8
layers = 2
width = 6
heads = 2
slots = 4
max_span = 7
ramp = 2
span_init = 0.3
)";

constexpr std::string_view kTransformerXl = R"([model]
family = "transformer_xl"
vocabulary = 8
layers = 2
width = 6
heads = 2
inner = 7
memory = 4
dropout = 0.0
)";

constexpr std::string_view kProductKey = R"([model]
family = "product_key"
vocabulary = 8
layers = 2
width = 6
heads = 2
inner = 7
position_rows = 9
dropout = 0.0

[product_key]
layers = [2]
subkeys = 3
heads = 2
selected = 2
query_width = 4
)";

constexpr std::string_view kRecurrent = R"([model]
family = "recurrent"
vocabulary = 8
embedding_width = 7
width = 6
encoder = "lstm"
readout = "key_value_predict"
window = 3
)";

constexpr std::string_view kTraining = R"(
[optimizer]
kind = "adam"

[schedule]
rate = 1e-3
steps = 1

[training]
batch = 1
block = 5
)";

std::string_view model_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::all_attention:
      return kAllAttention;
    case ModelFamily::transformer_xl:
      return kTransformerXl;
    case ModelFamily::product_key:
      return kProductKey;
    case ModelFamily::recurrent:
      return kRecurrent;
  }
  throw Error("tape: the family must be one that there is");
}

}  // namespace

std::string small_model(ModelFamily family) { return std::string(model_of(family)) + std::string(kTraining); }

}  // namespace engram
