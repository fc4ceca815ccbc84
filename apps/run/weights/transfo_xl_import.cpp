#include "apps/run/weights/transfo_xl_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/vocabulary/placeholders.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/weights/cluster_order_losses.hpp"
#include "apps/run/weights/foreign_layout.hpp"
#include "apps/run/weights/foreign_program.hpp"
#include "apps/run/weights/foreign_weights.hpp"
#include "apps/run/weights/import_vocabulary.hpp"
#include "apps/run/weights/transfo_xl_config.hpp"
#include "apps/run/weights/transfo_xl_module.hpp"
#include "apps/run/weights/transfo_xl_names.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// The tensors of a file, by their names in the layout. The original PyTorch program has the same names without the
/// prefix.
class Weights {
 public:
  explicit Weights(const fs::path& path) : file_(read_foreign_weights(path)) {
    const auto prefixed = file_.tensors.lower_bound(kTransfoXlPrefix);
    original_names_ = file_.tensors.contains("word_emb.emb_layers.0.weight") &&
                      (prefixed == file_.tensors.end() || !prefixed->first.starts_with(kTransfoXlPrefix));
  }

  const ForeignWeights& file() const { return file_; }
  bool original_names() const { return original_names_; }
  std::string stored_name(std::string_view name) const {
    if (original_names_ && name.starts_with(kTransfoXlPrefix)) name.remove_prefix(kTransfoXlPrefix.size());
    return std::string(name);
  }
  std::string layout_name(const std::string& stored) const {
    return original_names_ && !stored.starts_with("crit.") ? text(kTransfoXlPrefix, stored) : stored;
  }

  bool has(const std::string& name) const { return file_.tensors.contains(stored_name(name)); }
  const ForeignTensor& at(const std::string& name) const { return file_.tensors.at(stored_name(name)); }

  /// The widest dtype that is needed.
  DType dtype() const {
    const bool wide = std::ranges::any_of(file_.tensors, [this](const auto& entry) {
      return entry.second.kind == StoredFloat::f64 && layout_name(entry.first) != kTransfoXlFrequencies;
    });
    return wide ? DType::f64 : DType::f32;
  }

  TransfoXlFacts facts() const {
    TransfoXlFacts facts;
    facts.original_program = original_names_;
    for (const auto& [name, stored] : file_.tensors) facts.shapes.emplace(layout_name(name), stored.shape);
    facts.equal = [this](const std::string& a, const std::string& b) { return first_difference(at(a), at(b)) < 0; };
    return facts;
  }

 private:
  ForeignWeights file_;
  bool original_names_ = false;
};

void check_tensors(const Weights& weights, const std::vector<TransfoXlTensor>& layout) {
  std::vector<ForeignLayoutTensor> stored;
  for (const TransfoXlTensor& tensor : layout)
    stored.push_back({weights.stored_name(tensor.name), tensor.shape,
                      tensor.copy_of.empty() ? std::string() : weights.stored_name(tensor.copy_of)});
  require_layout(weights.file(), stored,
                 [&](const std::string& name) { return weights.layout_name(name) == kTransfoXlFrequencies; });
}

/// The parameters of the model as parts of the file's tensors. They refer to `weights`.
std::vector<TensorSource> parameter_sources(const Weights& weights, const std::vector<TransfoXlTensor>& layout,
                                            const ModelOptions& options, DType dtype) {
  const std::unique_ptr<LanguageModel> model = make_model(options);
  ParameterStore store;
  collect(*model, store);
  std::vector<TensorSource> sources;
  for (const TransfoXlTensor& tensor : layout) {
    std::size_t first = 0;
    for (const std::string& name : tensor.parameters) {
      const Parameter* const parameter = store.find(name);
      if (parameter == nullptr) throw Error(text("import: the model must have a parameter ", name, ", got none"));
      TensorSource source = parameter_source(name, dtype, parameter->shape(), weights.at(tensor.name), first);
      sources.push_back(tensor.rows_reversed ? with_rows_reversed(std::move(source)) : std::move(source));
      first += static_cast<std::size_t>(parameter->shape().count());
    }
    if (!tensor.parameters.empty() && first != static_cast<std::size_t>(tensor.shape.count()))
      throw Error(text("import: the parameters of ", tensor.name, " must be all of it, ", tensor.shape.count(),
                       " elements, got ", first));
  }
  if (sources.size() != store.parameters().size())
    throw Error(text("import: every one of ", store.parameters().size(), " parameters must be in the layout, got ",
                     sources.size()));
  return sources;
}

TransfoXlOrigin origin_of(const Weights& weights, const nlohmann::json& config, const TransformerXlOptions& options) {
  TransfoXlOrigin origin{.original_names = weights.original_names(),
                         .tied_position_biases = options.tie_position_biases};
  if (const auto names = config.find("architectures"); names != config.end() && names->is_array())
    for (const nlohmann::json& name : *names)
      if (name.is_string()) origin.architectures.push_back(name.get<std::string>());
  if (const auto type = config.find("model_type"); type != config.end() && type->is_string())
    origin.model_type = type->get<std::string>();
  return origin;
}

/// A run of no steps that has the model.
RunConfig run_of(const TransfoXlConfig& config) {
  RunConfig run;
  run.model.family = ModelFamily::transformer_xl;
  run.model.transformer_xl = config.options;
  // A configuration must have them. The rate is that of the family's published runs.
  run.schedule.steps = 1;
  run.schedule.rate = 2.5e-4;
  if (config.segment > 0) run.training.block = config.segment;
  run.check();
  return run;
}

/// What a text says of the order, where it says anything; else what the origin does.
ClusterOrderFound measured_order(const ClusterOrderLosses& losses, const std::string& tokens_of,
                                 const ClusterOrderFound& by_origin) {
  const std::string measured = fmt::format("{} tokens of {} have a loss of {:.4f} nats as natural, {:.4f} as reversed",
                                           losses.tokens, tokens_of, losses.natural, losses.reversed);
  ClusterOrderFound found = by_origin;
  if (!(losses.natural < losses.reversed) && !(losses.reversed < losses.natural)) {
    found.note += "\n  " + measured + ", which tells nothing";
    return found;
  }
  found.order = losses.reversed < losses.natural ? ClusterOrder::reversed : ClusterOrder::natural;
  found.decided = true;
  found.note = text("cluster order ", name_of(found.order), ": ", measured);
  if (by_origin.decided && by_origin.order != found.order) found.note += "\n  against " + by_origin.note;
  return found;
}

}  // namespace

TransfoXlImported import_transfo_xl(const TransfoXlImport& from) {
  if (from.cluster_order && !from.data.empty())
    throw UsageError(text("import: --data must decide the order of clusters, got the order ",
                          name_of(*from.cluster_order), " too\n  leave --data out, or --cluster-order auto"));
  const Weights weights(from.weights);
  require_program(weights.file(), kTransfoXlProgram);
  const fs::path beside = from.weights.parent_path() / "config.json";
  std::error_code ignored;
  const bool given = !from.config.empty(), read = given || fs::exists(beside, ignored);
  const fs::path path = given ? from.config : beside;
  // A model that was saved as a whole says what it is. A config.json beside it may be another one's.
  const PickleNode* const module = given ? nullptr : weights.file().module;
  nlohmann::json json = module != nullptr ? transfo_xl_config_of(*module)
                        : read
                            ? data::parse_object(data::read_bytes(path), path, "the file is damaged, or no config.json")
                            : nlohmann::json::object();
  apply_settings(json, from.settings);

  TransfoXlImported imported;
  imported.configured = module != nullptr ? text("the model in '", from.weights.string(), "'")
                        : read            ? text("'", path.string(), "'")
                                          : text("'", path.string(), "' (there is none)");
  const TransfoXlConfig config = read_transfo_xl_config(json, weights.facts(), imported.configured);
  imported.options = config.options;
  std::vector<TransfoXlTensor> layout = transfo_xl_tensors(config.options);
  check_tensors(weights, layout);
  std::optional<data::DataSet> data;
  if (!from.data.empty()) data.emplace(data::DataSet::open(from.data));
  const fs::path listed = from.vocabulary.empty() ? from.data : from.vocabulary;
  const data::Vocabulary vocabulary = read_import_vocabulary(listed, config.options.vocabulary);
  imported.symbols = data::symbols_text(vocabulary);
  if (data) data->require_vocabulary(vocabulary.hash(), text("'", listed.string(), "'"));

  const RunConfig run = run_of(config);
  imported.dtype = weights.dtype();
  std::vector<TensorSource> sources = parameter_sources(weights, layout, run.model, imported.dtype);
  ClusterOrderFound& order = imported.cluster_order;
  if (from.cluster_order) {
    order.order = *from.cluster_order;
  } else if (config.options.cutoffs.size() >= 2) {
    order = cluster_order_by_origin(origin_of(weights, json, config.options));
    if (data)
      order = measured_order(cluster_order_losses(run.model, sources, imported.dtype, data->split(from.split)),
                             text("split ", from.split, " of '", from.data.string(), "'"), order);
  } else if (data) {
    order.note = "cluster order: with fewer than two cut-offs there is one alone";
  }
  if (order.order == ClusterOrder::reversed) {
    layout = transfo_xl_tensors(config.options, order.order);
    sources = parameter_sources(weights, layout, run.model, imported.dtype);
  }
  make_folder("import", from.out.parent_path());
  Metadata metadata = model_metadata(run, vocabulary, 0);
  if (vocabulary.words() != nullptr && fs::is_directory(listed))
    metadata.emplace(metadata_keys::kText, data::read_text_rules(listed).json_text());
  write_safetensors(from.out, watched(std::move(sources), from.watch), metadata);
  imported.tensors = weights.file().tensors.size();
  return imported;
}

}  // namespace engram
