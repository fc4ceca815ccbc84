#include "apps/run/config/section_keys.hpp"

namespace engram {

void add_product_key_memory_keys(std::vector<ConfigKey>& keys) {
  constexpr auto kKeep = ConfigKey::OnResume::keep, kChange = ConfigKey::OnResume::change;
  const auto memory = [&keys](auto member, std::string_view name, auto on_resume, std::string_view meaning) {
    keys.push_back(make_key(
        "product_key", [](auto& config) -> auto& { return config.model.memories(); }, member, name, on_resume,
        meaning));
  };
  using Memory = ProductKeyOptions;
  memory(&Memory::count, "count", kKeep, "memories, at regular layers; 0: none but those of `layers`");
  memory(&Memory::layers, "layers", kKeep, "layers with a memory, the first being 1 (0 in tensor names and tables)");
  memory(&Memory::placement, "placement", kKeep, "instead of the feed-forward sublayer, beside it, or after the layer");
  memory(&Memory::keys, "keys", kKeep, "a slot for every combination of sub-keys, or a key for every slot");
  memory(&Memory::factors, "factors", kKeep, "sets of sub-keys: 2 or 3");
  memory(&Memory::subkeys, "subkeys", kKeep, "sub-keys of a set; slots are subkeys^factors");
  memory(&Memory::heads, "heads", kKeep, "heads, each with queries and keys of its own");
  memory(&Memory::selected, "selected", kKeep, "slots that a head reads");
  memory(&Memory::query_width, "query_width", kKeep, "numbers of a head's query");
  memory(&Memory::value_width, "value_width", kKeep, "numbers of a value; 0: as wide as the model");
  memory(&Memory::projection, "projection", kKeep, "a linear map behind the values");
  memory(&Memory::shared_values, "shared_values", kKeep, "all memories read one table");
  memory(&Memory::gate, "gate", kKeep, "what multiplies the values that were read");
  memory(&Memory::query_network, "query_network", kKeep, "what makes queries of hidden states");
  memory(&Memory::query_hidden, "query_hidden", kKeep, "mlp, heads_mlp: widths of its hidden layers");
  memory(&Memory::query_norm, "query_norm", kKeep, "what normalises queries");
  memory(&Memory::unit_keys, "unit_keys", kKeep, "sub-keys are compared at unit length");
  memory(&Memory::value_init, "value_init", kChange, "values at the start");
  memory(&Memory::value_dtype, "value_dtype", kKeep, "how values are stored; bf16 is rounded at random in updates");
  memory(&Memory::same_keys, "same_keys", kChange, "all memories start with the same keys");
  memory(&Memory::input_dropout, "input_dropout", kChange, "share of what the query network reads");
  memory(&Memory::query_dropout, "query_dropout", kChange, "share of queries");
  memory(&Memory::value_dropout, "value_dropout", kChange, "share of the sums of values");
}

}  // namespace engram
