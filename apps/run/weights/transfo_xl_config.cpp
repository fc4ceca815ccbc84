#include "apps/run/weights/transfo_xl_config.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"

namespace engram {
namespace {

constexpr std::string_view kModelType = "transfo-xl";
constexpr std::array<std::string_view, 25> kKeys{"attn_type",
                                                 "clamp_len",
                                                 "cutoffs",
                                                 "d_embed",
                                                 "d_head",
                                                 "d_inner",
                                                 "d_model",
                                                 "div_val",
                                                 "dropatt",
                                                 "dropout",
                                                 "layer_norm_epsilon",
                                                 "mem_len",
                                                 "model_type",
                                                 "n_head",
                                                 "n_layer",
                                                 "pre_lnorm",
                                                 "proj_share_all_but_first",
                                                 "same_length",
                                                 "sample_softmax",
                                                 "tgt_len",
                                                 "tie_projs",
                                                 "tie_weight",
                                                 "tie_word_embeddings",
                                                 "untie_r",
                                                 "vocab_size"};

/// The object's values, and which keys had to be known and were not.
class ConfigReader {
 public:
  ConfigReader(const nlohmann::json& config, const TransfoXlFacts& facts, const std::string& source)
      : config_(config), facts_(facts), source_(source) {}

  TransfoXlConfig read();

 private:
  using Integers = std::vector<std::int64_t>;

  [[noreturn]] void reject(std::string_view key, std::string_view rule, const nlohmann::json& value) const {
    throw UsageError(text("transfo-xl: ", key, " must be ", rule, ", got ", value.dump(), "\n  in ", source_));
  }
  const nlohmann::json* find(const char* key) const {
    const auto found = config_.find(key);
    return found == config_.end() || found->is_null() ? nullptr : &*found;
  }
  template <class T>
  std::optional<T> given(const char* key, bool (nlohmann::json::*is)() const noexcept, std::string_view rule) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!(value->*is)()) reject(key, rule, *value);
    return value->get<T>();
  }
  std::optional<std::int64_t> integer(const char* key) const {
    return given<std::int64_t>(key, &nlohmann::json::is_number_integer, "an integer");
  }
  std::optional<double> number(const char* key) const {
    return given<double>(key, &nlohmann::json::is_number, "a number");
  }
  std::optional<bool> flag(const char* key) const {
    return given<bool>(key, &nlohmann::json::is_boolean, "true or false");
  }
  template <class T>
  std::optional<std::vector<T>> list(const char* key, bool (nlohmann::json::*is)() const noexcept,
                                     std::string_view rule) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array() || !std::ranges::all_of(*value, [is](const auto& entry) { return (entry.*is)(); }))
      reject(key, rule, *value);
    return value->get<std::vector<T>>();
  }
  /// Notes the key where nothing says its value.
  template <class T>
  T needed(std::string_view key, const std::optional<T>& value) {
    if (!value) missing_.emplace_back(key);
    return value.value_or(T{});
  }

  bool has(const std::string& name) const { return facts_.shapes.contains(name); }
  /// The size of an axis of a tensor of that rank.
  std::optional<std::int64_t> axis(const std::string& name, int rank, int which) const {
    const auto found = facts_.shapes.find(name);
    if (found == facts_.shapes.end() || found->second.rank() != rank) return std::nullopt;
    return found->second[which];
  }
  static std::string table(std::int64_t b) { return text("transformer.word_emb.emb_layers.", b, ".weight"); }
  std::int64_t tables() const {
    std::int64_t count = 0;
    while (has(table(count))) ++count;
    return count;
  }
  /// Whether a tensor that may repeat another one is absent, or does.
  bool repeats(const std::string& copy, const std::string& of) const {
    if (!has(copy)) return true;
    return has(of) && facts_.shapes.find(copy)->second == facts_.shapes.find(of)->second && facts_.equal(copy, of);
  }

  std::optional<std::int64_t> layers() const;
  std::optional<std::int64_t> vocabulary() const;
  std::optional<Integers> cutoffs() const;
  std::optional<std::int64_t> divisor() const;
  bool tied_tables() const;
  void read_sizes(TransformerXlOptions& options);
  void read_ties(TransformerXlOptions& options) const;
  void check_kind() const;

  const nlohmann::json& config_;
  const TransfoXlFacts& facts_;
  const std::string& source_;
  std::vector<std::string> missing_;
};

std::optional<std::int64_t> ConfigReader::layers() const {
  constexpr std::string_view kPrefix = "transformer.layers.";
  std::int64_t most = 0;
  for (auto found = facts_.shapes.lower_bound(kPrefix);
       found != facts_.shapes.end() && found->first.starts_with(kPrefix); ++found) {
    std::int64_t layer = 0;
    const std::string_view digits = std::string_view(found->first).substr(kPrefix.size());
    // A number beyond that of all tensors is no layer's; the tensor will be an unknown one.
    if (std::from_chars(digits.data(), digits.data() + digits.size(), layer).ec == std::errc() &&
        layer < static_cast<std::int64_t>(facts_.shapes.size()))
      most = std::max(most, layer + 1);
  }
  return most > 0 ? std::optional(most) : std::nullopt;
}

std::optional<std::int64_t> ConfigReader::vocabulary() const {
  std::int64_t words = 0;
  for (std::int64_t b = 0; b < tables(); ++b) words += axis(table(b), 2, 0).value_or(0);
  return words > 0 ? std::optional(words) : std::nullopt;
}

std::optional<ConfigReader::Integers> ConfigReader::cutoffs() const {
  const std::int64_t count = tables();
  if (count == 0 || (count == 1 && has("crit.cluster_bias"))) return std::nullopt;  // one table does not say where
  Integers found;
  std::int64_t words = 0;
  for (std::int64_t b = 0; b + 1 < count; ++b) found.push_back(words += axis(table(b), 2, 0).value_or(0));
  return found;
}

std::optional<std::int64_t> ConfigReader::divisor() const {
  const std::int64_t count = tables();
  if (count < 2) return 1;
  const std::int64_t widest = axis(table(0), 2, 1).value_or(0);
  // Several may give these widths, which are rounded down; they mean the same model.
  for (std::int64_t candidate = 2; candidate <= widest; ++candidate) {
    std::int64_t width = widest, b = 0;
    while (b < count && axis(table(b), 2, 1) == width) {
      width /= candidate;
      ++b;
    }
    if (b == count) return candidate;
  }
  return std::nullopt;
}

bool ConfigReader::tied_tables() const {
  for (std::int64_t b = 0; b < std::max<std::int64_t>(1, tables()); ++b)
    if (!repeats(text("crit.out_layers.", b, ".weight"), table(b))) return false;
  return true;
}

void ConfigReader::check_kind() const {
  if (const nlohmann::json* type = find("model_type"); type != nullptr && *type != kModelType)
    reject("model_type", text("\"", kModelType, "\""), *type);
  if (const auto type = integer("attn_type"); type.value_or(0) != 0)
    reject("attn_type", "0, as that class has no other", *type);
  if (const auto samples = integer("sample_softmax"); samples.value_or(0) > 0)
    reject("sample_softmax", "at most 0: Engram has no sampled softmax", *samples);
  const auto tied = flag("tie_word_embeddings"), old_name = flag("tie_weight");
  if (tied && old_name && *tied != *old_name)
    reject("tie_word_embeddings", text("what tie_weight is, ", *old_name), *tied);
}

void ConfigReader::read_sizes(TransformerXlOptions& options) {
  const std::string layer = "transformer.layers.0.";
  const auto either = [this](const char* key, const std::optional<std::int64_t>& told) {
    const std::optional<std::int64_t> said = integer(key);
    return needed(key, said ? said : told);
  };
  options.vocabulary = either("vocab_size", vocabulary());
  options.layers = either("n_layer", layers());
  constexpr std::int64_t kMostLayers = 10'000;  // so that the list of their tensors has an end
  if (options.layers > kMostLayers) reject("n_layer", text("at most ", kMostLayers), options.layers);
  options.width = either("d_model", axis(layer + "dec_attn.o_net.weight", 2, 0));
  // The shared biases need not be repeated in the layers.
  const std::string biases = has(layer + "dec_attn.r_w_bias") ? layer + "dec_attn.r_w_bias" : "transformer.r_w_bias";
  options.heads = either("n_head", axis(biases, 2, 0));
  options.depth = either("d_head", axis(biases, 2, 1));
  options.inner = either("d_inner", axis(layer + "pos_ff.CoreNet.0.weight", 2, 0));
  options.embedding_width = either("d_embed", axis(table(0), 2, 1));
  options.divisor = either("div_val", divisor());
  const auto said = list<std::int64_t>("cutoffs", &nlohmann::json::is_number_integer, "a list of integers");
  options.cutoffs = needed("cutoffs", said ? said : cutoffs());
}

void ConfigReader::read_ties(TransformerXlOptions& options) const {
  options.tie_position_biases = !flag("untie_r").value_or(!has("transformer.r_w_bias"));
  const std::optional<bool> tied = flag("tie_word_embeddings"), old_name = flag("tie_weight");
  options.tie_tables = tied ? *tied : old_name ? *old_name : tied_tables();
  options.tie_projections = true;
  const std::size_t clusters = options.cutoffs.size() + 1;
  const auto said = list<bool>("tie_projs", &nlohmann::json::is_boolean, "a list of true and false");
  if (said && said->size() != clusters)
    reject("tie_projs", text("as long as there are clusters, ", clusters), *find("tie_projs"));
  const std::optional<bool> shared = flag("proj_share_all_but_first");
  for (std::size_t b = 0; b < clusters; ++b) {
    const auto cluster = static_cast<std::int64_t>(b);
    // The class never ties the first one by itself, so nothing but a list says that it is.
    const bool is_tied = said     ? (*said)[b]
                         : b == 0 ? false
                         : shared ? *shared
                                  : repeats(text("crit.out_projs.", cluster),
                                            text("transformer.word_emb.emb_projs.", tables() > 1 ? cluster : 0));
    if (!is_tied) options.untied_projections.push_back(cluster);
  }
}

TransfoXlConfig ConfigReader::read() {
  check_kind();
  TransfoXlConfig read;
  TransformerXlOptions& options = read.options;
  read_sizes(options);
  options.memory = needed("mem_len", integer("mem_len"));
  options.clamp = std::max<std::int64_t>(0, needed("clamp_len", integer("clamp_len")));
  options.visibility = needed("same_length", flag("same_length")) ? Visibility::last_memory : Visibility::all;
  options.pre_norm = needed("pre_lnorm", flag("pre_lnorm"));
  if (!missing_.empty()) {
    std::string names;
    for (const std::string& key : missing_) names += (names.empty() ? "" : ", ") + key;
    throw UsageError(text("transfo-xl: ", names, " must be given, got neither a value in ", source_,
                          " nor tensors that tell it\n  --config-json FILE names a config.json, --set KEY=VALUE "
                          "gives one key"));
  }
  options.memory_start = options.memory > 0 && !facts_.original_program ? MemoryStart::zeros : MemoryStart::empty;
  options.norm_epsilon = number("layer_norm_epsilon").value_or(1e-5);
  options.dropout = number("dropout").value_or(0);
  options.attention_dropout = number("dropatt").value_or(0);
  if (options.cutoffs.empty() && options.divisor != 1) {
    if (options.token_width() == options.width)
      throw UsageError(text("transfo-xl: div_val must be 1 without cutoffs where d_embed is d_model, ", options.width,
                            ", got ", options.divisor, "\n  Engram has no projection there"));
    options.divisor = 1;  // of one cluster it says nothing
  }
  read_ties(options);
  read.segment = std::max<std::int64_t>(0, integer("tgt_len").value_or(0));
  return read;
}

}  // namespace

void apply_settings(nlohmann::json& config, const std::vector<std::string>& settings) {
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    const std::string key = setting.substr(0, equals);
    if (std::ranges::find(kKeys, key) == kKeys.end()) {
      std::string known;
      for (const std::string_view name : kKeys) known += (known.empty() ? "" : ", ") + std::string(name);
      throw UsageError(text("--set: the key must be one of ", known, ", got '", setting, "'"));
    }
    const std::string written = equals == std::string::npos ? "" : setting.substr(equals + 1);
    nlohmann::json value = parse_json_or_discard(written);
    if (value.is_discarded())
      throw UsageError(
          text("--set: the value of ", key, " must be JSON, such as 8, true or [10,20], got '", written, "'"));
    config[key] = std::move(value);
  }
}

TransfoXlConfig read_transfo_xl_config(const nlohmann::json& config, const TransfoXlFacts& facts,
                                       const std::string& source) {
  return ConfigReader(config, facts, source).read();
}

nlohmann::ordered_json transfo_xl_config_json(const TransfoXlConfig& config, std::int64_t end_token) {
  const TransformerXlOptions& options = config.options;
  std::vector<bool> tied;
  for (std::size_t b = 0; b <= options.cutoffs.size(); ++b)
    tied.push_back(options.tie_projections &&
                   std::ranges::count(options.untied_projections, static_cast<std::int64_t>(b)) == 0);
  nlohmann::ordered_json json{{"model_type", kModelType},
                              {"architectures", {"TransfoXLLMHeadModel"}},
                              {"vocab_size", options.vocabulary},
                              {"cutoffs", options.cutoffs},
                              {"div_val", options.cutoffs.empty() ? 1 : options.divisor},
                              {"d_model", options.width},
                              {"d_embed", options.token_width()},
                              {"n_head", options.heads},
                              {"d_head", options.head_depth()},
                              {"d_inner", options.inner},
                              {"n_layer", options.layers},
                              {"pre_lnorm", options.pre_norm},
                              {"mem_len", options.memory},
                              {"clamp_len", options.clamp > 0 ? options.clamp : -1},
                              {"same_length", options.visibility == Visibility::last_memory},
                              {"attn_type", 0},
                              {"sample_softmax", -1},
                              {"adaptive", true},
                              {"dropout", options.dropout},
                              {"dropatt", options.attention_dropout},
                              {"untie_r", !options.tie_position_biases},
                              {"tie_word_embeddings", options.tie_tables},
                              {"tie_projs", tied},
                              {"layer_norm_epsilon", options.norm_epsilon}};
  if (end_token >= 0) json["eos_token_id"] = end_token;
  if (config.segment > 0) json["tgt_len"] = config.segment;
  return json;
}

}  // namespace engram
