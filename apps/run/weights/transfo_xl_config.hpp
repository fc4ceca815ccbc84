#pragma once
/// The config.json of Hugging Face's TransfoXL as options of a TransformerXlModel, and back ([transformer-xl 10]). What
/// it does not say is told from the tensors, as far as they tell it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "nn/models/transformer_xl_options.hpp"

namespace engram {

/// What a file of weights tells without a config.json.
struct TransfoXlFacts {
  std::map<std::string, Shape, std::less<>> shapes;
  /// Whether two of these tensors, of one shape, have the same elements.
  std::function<bool(const std::string&, const std::string&)> equal;
  /// The weights are of the original PyTorch program, whose memory is empty at the start of a text.
  bool original_program = false;
};

struct TransfoXlConfig {
  TransformerXlOptions options;
  std::int64_t segment = 0;  ///< tgt_len, tokens of a segment; 0: not said
};

/// Sets keys of the JSON object: each setting is KEY=VALUE, the value in JSON. Throws UsageError for a key that means
/// nothing to this program, naming those that do, and for what is no JSON.
void apply_settings(nlohmann::json& config, const std::vector<std::string>& settings);

/// Throws UsageError for a value of another kind, a model that Engram does not have (attn_type other than 0, sampled
/// softmax), and, in one message, for everything that neither the object nor the tensors say: `source` is what the
/// object was read from.
TransfoXlConfig read_transfo_xl_config(const nlohmann::json& config, const TransfoXlFacts& facts,
                                       const std::string& source);

/// The config.json of a model that require_transfo_xl_class lets pass. `end_token`: its id, -1:
/// none.
nlohmann::ordered_json transfo_xl_config_json(const TransfoXlConfig& config, std::int64_t end_token);

}  // namespace engram
