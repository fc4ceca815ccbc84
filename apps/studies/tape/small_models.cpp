#include "apps/studies/tape/small_models.hpp"

#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::string_view kAllAttention = R"([model]
family = "all_attention"
vocabulary = 8
layers = 2
width = 8
heads = 2
slots = 3
max_span = 4
ramp = 2
span_init = 0.3
)";

constexpr std::string_view kTransformerXl = R"([model]
family = "transformer_xl"
vocabulary = 8
layers = 2
width = 8
heads = 2
inner = 12
memory = 4
dropout = 0.0
)";

constexpr std::string_view kProductKey = R"([model]
family = "product_key"
vocabulary = 8
layers = 2
width = 8
heads = 2
position_rows = 8
dropout = 0.0

[product_key]
layers = [2]
subkeys = 4
heads = 2
selected = 2
query_width = 4
)";

constexpr std::string_view kRecurrent = R"([model]
family = "recurrent"
vocabulary = 8
embedding_width = 8
width = 6
encoder = "lstm"
readout = "key_value_predict"
window = 2
)";

constexpr std::string_view kTraining = R"(
[optimizer]
kind = "adam"

[schedule]
rate = 1e-3
steps = 1

[training]
batch = 1
block = 4
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
