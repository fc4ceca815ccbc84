#include "apps/interop/transfo_xl_import.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <system_error>

#include "apps/config/run_config.hpp"
#include "apps/data/data_set.hpp"
#include "apps/data/read_file.hpp"
#include "apps/data/word_list.hpp"
#include "apps/interop/stored_floats.hpp"
#include "apps/interop/transfo_xl_config.hpp"
#include "apps/interop/transfo_xl_names.hpp"
#include "apps/training/trained_model.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// The tensors of a file in the layout.
class Weights {
 public:
  explicit Weights(const fs::path& path) : file_(path, HalfFloats::listed) {}

  const SafetensorsFile& file() const { return file_; }
  bool has(const std::string& name) const { return file_.tensors().contains(name); }
  std::span<const std::byte> bytes(const std::string& name) const { return file_.bytes(file_.tensors().at(name)); }

  /// The first element in which two tensors of one shape differ, in any bit of their values; -1: none, or no floats.
  std::int64_t first_difference(const std::string& a, const std::string& b) const {
    constexpr std::int64_t kChunk = 1 << 14;
    const auto kind_a = stored_float(file_, a), kind_b = stored_float(file_, b);
    if (!kind_a || !kind_b) return -1;
    const std::int64_t count = file_.tensors().at(a).shape.count();
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
    const bool wide = std::ranges::any_of(file_.tensors(), [](const auto& entry) {
      return entry.second.dtype == DType::f64 && entry.first != kTransfoXlFrequencies;
    });
    return wide ? DType::f64 : DType::f32;
  }

  TransfoXlFacts facts() const {
    TransfoXlFacts facts;
    for (const auto& [name, stored] : file_.tensors()) facts.shapes.emplace(name, stored.shape);
    facts.equal = [this](const std::string& a, const std::string& b) { return first_difference(a, b) < 0; };
    return facts;
  }

 private:
  SafetensorsFile file_;
};

std::vector<std::string> differences(const Weights& weights, const std::vector<TransfoXlTensor>& layout) {
  std::vector<std::string> found;
  std::map<std::string, bool, std::less<>> fits;  // those of the layout
  for (const TransfoXlTensor& tensor : layout) {
    bool& good = fits[tensor.name] = false;
    if (!weights.has(tensor.name)) {
      if (tensor.copy_of.empty()) found.push_back(text("missing: ", tensor.name, " ", tensor.shape));
      continue;
    }
    const Shape& shape = weights.file().tensors().at(tensor.name).shape;
    if (shape != tensor.shape) {
      found.push_back(text("different: ", tensor.name, " must be ", tensor.shape, ", got ", shape));
    } else if (!stored_float(weights.file(), tensor.name)) {
      found.push_back(text("different: ", tensor.name, " must be of floating-point numbers, got integers"));
    } else if (!tensor.copy_of.empty() && fits[tensor.copy_of]) {
      if (const std::int64_t at = weights.first_difference(tensor.name, tensor.copy_of); at >= 0)
        found.push_back(
            text("untied: ", tensor.name, " must repeat ", tensor.copy_of, ", got another value at element ", at));
    } else {
      good = true;
    }
  }
  for (const auto& [name, stored] : weights.file().tensors())
    if (!fits.contains(name) && name != kTransfoXlFrequencies)
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
      const auto read = [stored = weights.bytes(tensor.name), kind = *stored_float(weights.file(), tensor.name), first,
                         dtype](std::size_t offset, std::span<std::byte> to) {
        read_floats(stored, kind, first + offset / size_of(dtype), dtype, to);
      };
      sources.push_back({name, dtype, parameter->shape(), read});
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

}  // namespace

TransfoXlImported import_transfo_xl(const TransfoXlImport& from) {
  const Weights weights(from.weights);
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
  const std::vector<TransfoXlTensor> layout = transfo_xl_tensors(config.options);
  check_tensors(weights, layout);
  const data::Vocabulary vocabulary = read_vocabulary(from.vocabulary, config.options.vocabulary);

  RunConfig run;
  run.model.family = ModelFamily::transformer_xl;
  run.model.transformer_xl = config.options;
  // A configuration must have them; no step was done. The rate is that of the family's published runs.
  run.schedule.steps = 1;
  run.schedule.rate = 2.5e-4;
  if (config.segment > 0) run.training.block = config.segment;
  run.check();
  imported.dtype = weights.dtype();
  const std::vector<TensorSource> sources = parameter_sources(weights, layout, run.model, imported.dtype);
  write_safetensors(from.out, sources,
                    {{std::string(metadata_keys::kFormat), std::string(kCheckpointFormat)},
                     {std::string(metadata_keys::kConfig), to_toml(run)},
                     {std::string(metadata_keys::kVocabulary), vocabulary.json_text()},
                     {std::string(metadata_keys::kStep), "0"}});
  imported.tensors = weights.file().tensors().size();
  return imported;
}

}  // namespace engram
