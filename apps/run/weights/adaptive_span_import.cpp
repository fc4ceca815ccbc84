#include "apps/run/weights/adaptive_span_import.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/vocabulary/placeholders.hpp"
#include "apps/run/config/config_review.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/weights/adaptive_span_names.hpp"
#include "apps/run/weights/foreign_layout.hpp"
#include "apps/run/weights/foreign_program.hpp"
#include "apps/run/weights/foreign_weights.hpp"
#include "apps/run/weights/import_vocabulary.hpp"
#include "core/error.hpp"
#include "core/files/safetensors.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// What the shapes tell of the model.
class AdaptiveSpanSizes {
 public:
  explicit AdaptiveSpanSizes(const ForeignWeights& weights) : weights_(weights) {}

  AllAttentionOptions read() const {
    AllAttentionOptions options;
    options.width = axis("layers.0.attn.proj_query.weight", 2, 0);
    const std::int64_t depth = axis("key_pe", 3, 1);
    options.max_span = axis("key_pe", 3, 2);
    if (depth < 1 || options.width < 1 || options.width % depth != 0)
      refuse(text("key_pe must have a width that divides that of the model, ", options.width, ", got ", depth));
    options.heads = options.width / depth;
    while (has(text("layers.", options.layers, ".attn.proj_query.weight"))) ++options.layers;
    const std::string first = "layers.0.attn.attn.";
    options.memory_mode = has(first + "persistent_memory.key") ? MemoryMode::all : MemoryMode::transformer;
    if (options.memory_mode == MemoryMode::all)
      options.slots = axis(first + "persistent_memory.key", 3, 2);
    else
      options.inner = axis("layers.0.ff.fc1.weight", 2, 0);
    options.span = has(first + "adaptive_span._mask.current_val") ? SpanKind::adaptive : SpanKind::fixed;
    options.pad = Pad::attend_zero;
    read_tokens(options);
    return options;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw FileError(text("import: '", weights_.path.string(), "': ", what));
  }
  bool has(const std::string& name) const { return weights_.tensors.contains(name); }
  std::int64_t axis(const std::string& name, int rank, int which) const {
    const auto found = weights_.tensors.find(name);
    if (found == weights_.tensors.end())
      refuse(text("must have the tensors of the adaptive-span program, got none named ", name));
    if (found->second.shape.rank() != rank) refuse(text(name, " must have ", rank, " axes, got ", found->second.shape));
    return found->second.shape[which];
  }
  bool repeats(const std::string& copy, const std::string& of) const {
    const auto a = weights_.tensors.find(copy), b = weights_.tensors.find(of);
    if (a == weights_.tensors.end()) return true;
    return b != weights_.tensors.end() && a->second.shape == b->second.shape &&
           first_difference(a->second, b->second) < 0;
  }
  void read_tokens(AllAttentionOptions& options) const {
    if (has("in_emb.weight")) {
      options.vocabulary = axis("in_emb.weight", 2, 0);
      return;
    }
    std::int64_t words = axis("in_emb.emb_layers.0.weight", 2, 0);
    for (std::int64_t i = 1; has(text("in_emb.emb_layers.", i, ".weight")); ++i) {
      options.cutoffs.push_back(words);
      words += axis(text("in_emb.emb_layers.", i, ".weight"), 2, 0);
    }
    options.vocabulary = words;
    for (std::size_t i = 0; i <= options.cutoffs.size(); ++i) {
      options.tie_tables &=
          repeats(text("out_emb.out_layers.", i, ".weight"), text("in_emb.emb_layers.", i, ".weight"));
      options.tie_projections &= repeats(text("out_emb.out_projs.", i), text("in_emb.emb_projs.", i));
    }
  }

  const ForeignWeights& weights_;
};

template <class Number>
Number setting_value(const std::string& setting, std::string_view written) {
  Number value{};
  const auto [end, fault] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (fault != std::errc() || end != written.data() + written.size())
    throw UsageError(text("--set: the value must be a number, got '", setting, "'"));
  return value;
}

void apply_setting(RunConfig& run, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  // The program's options are --adapt-span-ramp and so on, its variables adapt_span_ramp: either is meant.
  std::string key = setting.substr(0, equals);
  std::ranges::replace(key, '-', '_');
  const std::string_view value = equals == std::string::npos ? "" : std::string_view(setting).substr(equals + 1);
  AllAttentionOptions& model = run.model.all_attention;
  if (key == "adapt_span_ramp")
    model.ramp = setting_value<std::int64_t>(setting, value);
  else if (key == "block_size" || key == "block_sz")
    run.training.block = setting_value<std::int64_t>(setting, value);
  else if (key == "dropout")
    model.dropout = setting_value<double>(setting, value);
  else if (key == "emb_dropout")
    model.embedding_dropout = setting_value<double>(setting, value);
  else
    throw UsageError(text("--set: the key must be one of adapt_span_ramp, block_size, dropout and emb_dropout, got '",
                          setting,
                          "'\n  they are that program's --adapt-span-ramp, --block-sz, --dropout and --emb-dropout"));
}

/// A run of no steps that has the model.
RunConfig adaptive_span_run(const AllAttentionOptions& options, const std::vector<std::string>& settings) {
  RunConfig run;
  run.model.family = ModelFamily::all_attention;
  run.model.all_attention = options;
  // A configuration must have them. The rate is that of the published runs of characters.
  run.schedule.steps = 1;
  run.schedule.rate = 0.07;
  for (const std::string& setting : settings) apply_setting(run, setting);
  run.check();
  return run;
}

std::vector<TensorSource> adaptive_span_sources(const ForeignWeights& weights,
                                                const std::vector<AdaptiveSpanTensor>& layout,
                                                const ModelOptions& options, DType dtype) {
  const std::unique_ptr<LanguageModel> model = make_model(options);
  ParameterStore store;
  collect(*model, store);
  std::vector<TensorSource> sources;
  for (const auto& [stored, name, view] : layout) {
    if (name.empty()) continue;
    const Parameter* const parameter = store.find(name);
    const ForeignTensor seen = seen_as(view, weights.tensors.at(stored.name));
    if (parameter == nullptr || parameter->shape() != seen.shape)
      throw Error(text("import: the model must have a parameter ", name, " ", seen.shape, ", got another one"));
    sources.push_back(parameter_source(name, dtype, seen.shape, seen, 0));
  }
  if (sources.size() != store.parameters().size())
    throw Error(text("import: every one of ", store.parameters().size(), " parameters must be in the layout, got ",
                     sources.size()));
  return sources;
}

}  // namespace

AdaptiveSpanImported import_adaptive_span(const AdaptiveSpanImport& from) {
  const ForeignWeights weights = read_foreign_weights(from.weights);
  require_program(weights, kAdaptiveSpanProgram);
  const RunConfig run = adaptive_span_run(AdaptiveSpanSizes(weights).read(), from.settings);
  AdaptiveSpanImported imported{
      .options = run.model.all_attention, .tensors = weights.tensors.size(), .warnings = config_warnings(run)};
  const std::vector<AdaptiveSpanTensor> layout = adaptive_span_tensors(imported.options);
  std::vector<ForeignLayoutTensor> stored;
  for (const AdaptiveSpanTensor& tensor : layout) stored.push_back(tensor.stored);
  require_layout(weights, stored, is_adaptive_span_buffer);
  const data::Vocabulary vocabulary = read_import_vocabulary(from.vocabulary, imported.options.vocabulary);
  imported.symbols = data::symbols_text(vocabulary);
  if (std::ranges::any_of(stored, [&](const ForeignLayoutTensor& tensor) {
        const auto found = weights.tensors.find(tensor.name);
        return found != weights.tensors.end() && found->second.kind == StoredFloat::f64;
      }))
    imported.dtype = DType::f64;
  std::vector<TensorSource> sources = adaptive_span_sources(weights, layout, run.model, imported.dtype);
  make_folder("import", from.out.parent_path());
  Metadata metadata = model_metadata(run, vocabulary, 0);
  if (vocabulary.words() != nullptr && fs::is_directory(from.vocabulary))
    metadata.emplace(metadata_keys::kText, data::read_text_rules(from.vocabulary).json_text());
  write_safetensors(from.out, watched(std::move(sources), from.watch), metadata);
  return imported;
}

}  // namespace engram
