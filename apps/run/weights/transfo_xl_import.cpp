#include "apps/run/weights/transfo_xl_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <system_error>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/vocabulary/word_list.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/weights/cluster_order_losses.hpp"
#include "apps/run/weights/stored_floats.hpp"
#include "apps/run/weights/transfo_xl_config.hpp"
#include "apps/run/weights/transfo_xl_names.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kClassPrefix = "transformer.";

/// The tensors of a file, by their names in the layout. The original PyTorch program has the same names without the
/// prefix.
class Weights {
 public:
  explicit Weights(const fs::path& path) : file_(path, HalfFloats::listed) {
    const auto prefixed = file_.tensors().lower_bound(kClassPrefix);
    original_names_ = file_.tensors().contains("word_emb.emb_layers.0.weight") &&
                      (prefixed == file_.tensors().end() || !prefixed->first.starts_with(kClassPrefix));
  }

  const SafetensorsFile& file() const { return file_; }
  bool original_names() const { return original_names_; }
  std::string stored_name(std::string_view name) const {
    if (original_names_ && name.starts_with(kClassPrefix)) name.remove_prefix(kClassPrefix.size());
    return std::string(name);
  }
  std::string layout_name(const std::string& stored) const {
    return original_names_ && !stored.starts_with("crit.") ? text(kClassPrefix, stored) : stored;
  }

  bool has(const std::string& name) const { return file_.tensors().contains(stored_name(name)); }
  const Shape& shape(const std::string& name) const { return at(name).shape; }
  std::span<const std::byte> bytes(const std::string& name) const { return file_.bytes(at(name)); }
  /// Nothing for integers.
  std::optional<StoredFloat> kind(const std::string& name) const { return stored_float(file_, stored_name(name)); }

  /// The first element in which two tensors of one shape differ, in any bit of their values; -1: none, or no floats.
  std::int64_t first_difference(const std::string& a, const std::string& b) const {
    constexpr std::int64_t kChunk = 1 << 14;
    const auto kind_a = kind(a), kind_b = kind(b);
    if (!kind_a || !kind_b) return -1;
    const std::int64_t count = shape(a).count();
    std::vector<std::uint64_t> left, right;  // of doubles, which hold all of them exactly
    for (std::int64_t begin = 0; begin < count; begin += kChunk) {
      const auto size = static_cast<std::size_t>(std::min(kChunk, count - begin));
      left.resize(size);
      right.resize(size);
      const auto first = static_cast<std::size_t>(begin);
      read_floats(bytes(a), *kind_a, first, DType::f64, std::as_writable_bytes(std::span(left)));
      read_floats(bytes(b), *kind_b, first, DType::f64, std::as_writable_bytes(std::span(right)));
      const auto [at, unused] = std::ranges::mismatch(left, right);
      if (at != left.end()) return begin + (at - left.begin());
    }
    return -1;
  }

  /// The widest dtype that is needed.
  DType dtype() const {
    const bool wide = std::ranges::any_of(file_.tensors(), [this](const auto& entry) {
      return entry.second.dtype == DType::f64 && layout_name(entry.first) != kTransfoXlFrequencies;
    });
    return wide ? DType::f64 : DType::f32;
  }

  TransfoXlFacts facts() const {
    TransfoXlFacts facts;
    facts.original_program = original_names_;
    for (const auto& [name, stored] : file_.tensors()) facts.shapes.emplace(layout_name(name), stored.shape);
    facts.equal = [this](const std::string& a, const std::string& b) { return first_difference(a, b) < 0; };
    return facts;
  }

 private:
  const StoredTensor& at(const std::string& name) const { return file_.tensors().at(stored_name(name)); }

  SafetensorsFile file_;
  bool original_names_ = false;
};

std::vector<std::string> differences(const Weights& weights, const std::vector<TransfoXlTensor>& layout) {
  std::vector<std::string> found;
  std::map<std::string, bool, std::less<>> fits;  // those of the layout
  for (const TransfoXlTensor& tensor : layout) {
    bool& good = fits[tensor.name] = false;
    const std::string name = weights.stored_name(tensor.name);
    if (!weights.has(tensor.name)) {
      if (tensor.copy_of.empty()) found.push_back(text("missing: ", name, " ", tensor.shape));
      continue;
    }
    const Shape& shape = weights.shape(tensor.name);
    if (shape != tensor.shape) {
      found.push_back(text("different: ", name, " must be ", tensor.shape, ", got ", shape));
    } else if (!weights.kind(tensor.name)) {
      found.push_back(text("different: ", name, " must be of floating-point numbers, got integers"));
    } else if (!tensor.copy_of.empty() && fits[tensor.copy_of]) {
      if (const std::int64_t at = weights.first_difference(tensor.name, tensor.copy_of); at >= 0)
        found.push_back(text("untied: ", name, " must repeat ", weights.stored_name(tensor.copy_of),
                             ", got another value at element ", at));
    } else {
      good = true;
    }
  }
  for (const auto& [name, stored] : weights.file().tensors())
    if (const std::string known = weights.layout_name(name); !fits.contains(known) && known != kTransfoXlFrequencies)
      found.push_back(text("extra: ", name, " ", stored.shape));
  return found;
}

void check_tensors(const Weights& weights, const std::vector<TransfoXlTensor>& layout) {
  const std::vector<std::string> found = differences(weights, layout);
  if (found.empty()) return;
  std::string message =
      text("import: '", weights.file().path().string(), "' must hold exactly the tensors of the model, got ",
           found.size(), found.size() == 1 ? " difference" : " differences");
  for (const std::string& line : found) message += "\n  " + line;
  throw FileError(message);
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
      const auto read = [stored = weights.bytes(tensor.name), kind = *weights.kind(tensor.name), first, dtype](
                            std::size_t offset, std::span<std::byte> to) {
        read_floats(stored, kind, first + offset / size_of(dtype), dtype, to);
      };
      TensorSource source{name, dtype, parameter->shape(), read};
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

data::Vocabulary placeholders(std::int64_t size) {
  data::WordTable words;
  for (std::int64_t id = 0; id < size; ++id) words.add(text("<", id, ">"));
  return data::WordVocabulary(std::move(words), /*end_of_line=*/false, /*source_hash=*/0);
}

/// Lines end with "<eos>" where it is one of the tokens.
data::Vocabulary listed_words(const fs::path& path) {
  data::WordRules rules;
  rules.end_of_line = false;
  data::WordVocabulary words = data::read_word_list(path, rules);
  if (words.id_of(data::WordVocabulary::kEndOfLine) < 0) return words;
  rules.end_of_line = true;
  return data::read_word_list(path, rules);
}

data::Vocabulary read_vocabulary(const fs::path& path, std::int64_t size) {
  if (path.empty()) return placeholders(size);
  data::Vocabulary vocabulary =
      fs::is_directory(path) ? data::Vocabulary::load(path / data::kVocabularyFile) : listed_words(path);
  if (vocabulary.size() != size)
    throw UsageError(text("import: the vocabulary must have the ", size, " tokens of the model, got ",
                          vocabulary.size(), " in '", path.string(), "'"));
  return vocabulary;
}

[[noreturn]] void refuse_own(const fs::path& path) {
  throw UsageError(text("import: '", path.string(), "' must be weights of another program, got ",
                        "Engram's own\n  they need no import: engram evaluate, generate and export take them as they "
                        "are"));
}

void require_foreign_path(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return;
  for (const CheckpointKind kind : {CheckpointKind::newest, CheckpointKind::best})
    if (fs::exists(checkpoint_path(path, kind), ignored)) refuse_own(path);
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
  require_foreign_path(from.weights);
  const Weights weights(from.weights);
  if (weights.file().metadata().contains(metadata_keys::kFormat)) refuse_own(from.weights);
  fs::path beside = from.weights.parent_path() / "config.json";
  std::error_code ignored;
  const bool given = !from.config.empty(), read = given || fs::exists(beside, ignored);
  const fs::path path = given ? from.config : beside;
  nlohmann::json json = read ? data::parse_object(data::read_bytes(path), path) : nlohmann::json::object();
  apply_settings(json, from.settings);

  TransfoXlImported imported;
  imported.configured = read ? text("'", path.string(), "'") : text("'", path.string(), "' (there is none)");
  const TransfoXlConfig config = read_transfo_xl_config(json, weights.facts(), imported.configured);
  imported.options = config.options;
  std::vector<TransfoXlTensor> layout = transfo_xl_tensors(config.options);
  check_tensors(weights, layout);
  std::optional<data::DataSet> data;
  if (!from.data.empty()) data.emplace(data::DataSet::open(from.data));
  const fs::path listed = from.vocabulary.empty() ? from.data : from.vocabulary;
  const data::Vocabulary vocabulary = read_vocabulary(listed, config.options.vocabulary);
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
  imported.tensors = weights.file().tensors().size();
  return imported;
}

}  // namespace engram
