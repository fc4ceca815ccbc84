#include "apps/run/model/checkpoint_format.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"

namespace engram {
namespace {

constexpr std::string_view kForeign =
    "it is no checkpoint of Engram; docs/reference/checkpoints.md says what one holds";

std::uint32_t parse_contents(const std::string& stated) {
  constexpr std::string_view kPrefix = "crc32:";
  std::uint32_t contents = 0;
  const char* const end = stated.data() + stated.size();
  if (!stated.starts_with(kPrefix) || stated.size() != kPrefix.size() + 8 ||
      std::from_chars(stated.data() + kPrefix.size(), end, contents, 16).ptr != end)
    throw FileError(text("a checksum must be \"crc32:\" and eight digits, got '", stated, "'"));
  return contents;
}

/// The dtype of the parameters but for tables, which may be stored in fewer bits: the widest.
DType parameter_dtype(const CheckpointFile& file) {
  std::optional<DType> widest;
  for (const std::string& name : file.names()) {
    if (!is_parameter_name(name)) continue;
    const DType dtype = file.at(name).dtype;
    if (!widest || size_of(dtype) > size_of(*widest)) widest = dtype;
  }
  return widest.value_or(DType::f32);
}

std::map<std::string, std::uint32_t> mapped_tables(const CheckpointFile& file) {
  std::map<std::string, std::uint32_t> tables;
  const auto found = file.metadata().find(metadata_keys::kTables);
  if (found == file.metadata().end()) return tables;
  try {
    const nlohmann::json list = parse_json(found->second);
    for (const auto& [name, checksum] : list.items()) tables[name] = parse_contents(checksum.get<std::string>());
  } catch (const std::exception& error) {
    throw FileError(text("checkpoint: '", file.path().string(), "' must list its mapped tables in '",
                         metadata_keys::kTables, "', got '", found->second, "': ", error.what()));
  }
  return tables;
}

/// Of a file that does not say: as TextRules is made.
data::TextRules text_rules(const CheckpointFile& file) {
  const auto found = file.metadata().find(metadata_keys::kText);
  if (found == file.metadata().end()) return {};
  try {
    return data::TextRules::parse(found->second);
  } catch (const std::exception& error) {
    throw FileError(text("checkpoint: '", file.path().string(), "' must say in '", metadata_keys::kText,
                         "' how text becomes words, got '", found->second, "': ", error.what()));
  }
}

}  // namespace

bool is_parameter_name(std::string_view name) {
  return !name.starts_with(kOptimizerPrefix) && !name.starts_with(kCachePrefix) && !name.starts_with(kAveragePrefix);
}

Metadata model_metadata(const RunConfig& config, const data::Vocabulary& vocabulary, std::int64_t step) {
  return {{std::string(metadata_keys::kFormat), std::string(kCheckpointFormat)},
          {std::string(metadata_keys::kConfig), to_toml(config)},
          {std::string(metadata_keys::kVocabulary), vocabulary.json_text()},
          {std::string(metadata_keys::kStep), text(step)}};
}

Metadata model_metadata(const RunConfig& config, const data::DataSet& data, std::int64_t step) {
  Metadata metadata = model_metadata(config, data.vocabulary(), step);
  if (data.kind() == data::TokenKind::word || data.text_rules().tokenizer)
    metadata.emplace(metadata_keys::kText, data.text_rules().json_text());
  metadata.emplace(metadata_keys::kSeed, text(config.training.seed));
  metadata.emplace(metadata_keys::kData, data::hash_text(data.hash()));
  return metadata;
}

void append_average(std::vector<NamedTensor>& tensors, const WeightAverage& average) {
  average.visit_state([&](const std::string& name, const Tensor& tensor) {
    tensors.push_back({std::string(kAveragePrefix) + name, tensor});
  });
}

const std::string& required_entry(const CheckpointFile& file, std::string_view key, std::string_view advice) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw FileError(
        text("checkpoint: '", file.path().string(), "' must have '", key, "' in its metadata, got none\n  ", advice));
  return found->second;
}

std::int64_t count_entry(const CheckpointFile& file, std::string_view key, std::string_view what) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return 0;
  const std::string& written = found->second;
  std::int64_t count = -1;
  const auto [rest, error] = std::from_chars(written.data(), written.data() + written.size(), count);
  if (error != std::errc() || rest != written.data() + written.size() || count < 0)
    throw FileError(text("checkpoint: '", file.path().string(), "' must state its ", what,
                         " as a number from 0 on, got '", written, "'"));
  return count;
}

std::int64_t updates_of_means(const CheckpointFile& file) {
  const auto found = file.metadata().find(metadata_keys::kRun);
  if (found == file.metadata().end()) return 0;
  const nlohmann::json state = parse_json_or_discard(found->second);
  const auto average = state.is_object() ? state.find(kAverageKey) : state.end();
  return average == state.end() || !average->is_object() ? 0 : average->value("updates", std::int64_t{0});
}

std::string contents_text(std::uint32_t contents) { return fmt::format("crc32:{:08x}", contents); }

CheckpointFacts read_facts(const CheckpointFile& file) {
  const std::string& format = required_entry(file, metadata_keys::kFormat, kForeign);
  if (format != kCheckpointFormat)
    throw FileError(text("checkpoint: '", file.path().string(), "' must be of format ", kCheckpointFormat, ", got '",
                         format, "'\n  it is of another version of Engram"));
  const std::string source = text("the metadata of '", file.path().string(), "'");
  CheckpointFacts facts{
      .config = parse_model_config(required_entry(file, metadata_keys::kConfig, kForeign), source),
      .vocabulary = data::Vocabulary::parse(required_entry(file, metadata_keys::kVocabulary, kForeign), file.path()),
      .text = text_rules(file),
      .step = count_entry(file, metadata_keys::kStep, "step")};
  if (facts.config.model.vocabulary() == 0) facts.config.model.set_vocabulary(facts.vocabulary.size());
  if (facts.config.model.vocabulary() != facts.vocabulary.size())
    throw FileError(text("checkpoint: '", file.path().string(), "' must have one symbol for each of its model's ",
                         facts.config.model.vocabulary(), ", got a vocabulary of ", facts.vocabulary.size()));
  facts.dtype = parameter_dtype(file);
  facts.mapped_tables = mapped_tables(file);
  return facts;
}

}  // namespace engram
