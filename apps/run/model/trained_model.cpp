#include "apps/run/model/trained_model.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/optim/weight_average.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

const std::string& required_entry(const CheckpointFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw FileError(text("checkpoint: '", file.path().string(), "' must have '", key, "' in its metadata, got none",
                         "\n  it is no checkpoint of Engram; docs/checkpoints.md says what one holds"));
  return found->second;
}

/// An entry that is a number from 0 on; 0 when there is none.
std::int64_t read_count(const CheckpointFile& file, std::string_view key, const char* what) {
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

/// Of how many updates the mean weights beside a run's weights are; 0: there are none.
std::int64_t updates_of_means(const CheckpointFile& file) {
  const auto found = file.metadata().find(metadata_keys::kRun);
  if (found == file.metadata().end()) return 0;
  const nlohmann::json state = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  const auto average = state.is_object() ? state.find(kAverageKey) : state.end();
  return average == state.end() || !average->is_object() ? 0 : average->value("updates", std::int64_t{0});
}

std::filesystem::path tables_folder(const std::filesystem::path& checkpoint) {
  const std::filesystem::path folder = checkpoint.parent_path();
  return folder.empty() ? "." : folder;
}

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
    if (name.starts_with("optimizer/") || name.starts_with("state/") || name.starts_with(kAveragePrefix)) continue;
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
    const nlohmann::json list = nlohmann::json::parse(found->second);
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

/// Files of the right shape may be those of another run.
void check_contents(const ParameterStore& store, const CheckpointFacts& facts,
                    const std::filesystem::path& checkpoint) {
  for (const Parameter* table : store.tables()) {
    const auto stated = facts.mapped_tables.find(table->name());
    if (stated == facts.mapped_tables.end())
      throw FileError(text("checkpoint: '", checkpoint.string(), "' must list every table of its model in '",
                           metadata_keys::kTables, "', got none named ", table->name()));
    if (const std::uint32_t found = table->mapped()->header().contents; found != stated->second)
      throw FileError(text("table file: '", table->mapped()->path().string(), "' must hold the table ",
                           contents_text(stated->second), " of its checkpoint, got ", contents_text(found),
                           "\n  it is of another run or of another time; engram map writes both anew"));
  }
}

}  // namespace

std::string contents_text(std::uint32_t contents) { return fmt::format("crc32:{:08x}", contents); }

CheckpointFacts read_facts(const CheckpointFile& file) {
  const std::string& format = required_entry(file, metadata_keys::kFormat);
  if (format != kCheckpointFormat)
    throw FileError(text("checkpoint: '", file.path().string(), "' must be of format ", kCheckpointFormat, ", got '",
                         format, "'\n  it is of another version of Engram"));
  const std::string source = text("the metadata of '", file.path().string(), "'");
  CheckpointFacts facts{
      .config = parse_model_config(required_entry(file, metadata_keys::kConfig), source),
      .vocabulary = data::Vocabulary::parse(required_entry(file, metadata_keys::kVocabulary), file.path()),
      .text = text_rules(file),
      .step = read_count(file, metadata_keys::kStep, "step")};
  if (facts.config.model.vocabulary() == 0) facts.config.model.set_vocabulary(facts.vocabulary.size());
  if (facts.config.model.vocabulary() != facts.vocabulary.size())
    throw FileError(text("checkpoint: '", file.path().string(), "' must have one symbol for each of its model's ",
                         facts.config.model.vocabulary(), ", got a vocabulary of ", facts.vocabulary.size()));
  facts.dtype = parameter_dtype(file);
  facts.mapped_tables = mapped_tables(file);
  return facts;
}

std::vector<NamedTensor> parameter_tensors(const ParameterStore& store) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, parameter] : store.parameters())
    if (parameter->mapped() == nullptr) tensors.push_back({name, parameter->value()});
  return tensors;
}

TrainedModel::TrainedModel(const std::filesystem::path& run_or_checkpoint, CheckpointKind kind, Runtime& runtime,
                           DType dtype, const Adapt& adapt)
    : TrainedModel(CheckpointFile(find_checkpoint(run_or_checkpoint, kind)), runtime, dtype, adapt) {}

TrainedModel::TrainedModel(const CheckpointFile& file, Runtime& runtime, DType dtype, const Adapt& adapt)
    : path_(file.path()), facts_(read_facts(file)) {
  facts_.config.model.check_dtype(dtype, "model");
  if (adapt) adapt(facts_.config.model);
  model_ = make_model(facts_.config.model);
  collect(*model_, store_);
  const bool mapped = !facts_.mapped_tables.empty();
  store_.place(runtime.backend(), dtype, facts_.config.training.seed, mapped ? tables_folder(path_) : "");
  if (mapped) check_contents(store_, facts_, path_);
  file.load(runtime.backend(), parameter_tensors(store_),
            {.may_be_absent = {}, .may_be_ignored = {"optimizer/", "state/", "average/"}, .convert_floats = true});
  averaged_over_ = read_count(file, metadata_keys::kAveraged, "averaged updates");
  if (const std::int64_t updates = updates_of_means(file); updates > 0) {
    // A run whose weights are averaged is judged by their mean.
    WeightAverage average(store_);
    average.start(runtime.step());
    std::vector<NamedTensor> means;
    average.visit_state([&means](const std::string& name, const Tensor& tensor) {
      means.push_back({text(kAveragePrefix, name), tensor});
    });
    LoadRules rules{.may_be_absent = {}, .may_be_ignored = {"optimizer/", "state/"}, .convert_floats = true};
    for (const NamedTensor& parameter : parameter_tensors(store_)) rules.may_be_ignored.push_back(parameter.name);
    file.load(runtime.backend(), means, rules);
    average.restore(updates);
    averaged_over_ = updates;
    average.swap(runtime.step());
  }
  model_->refresh(runtime.backend());
}

std::vector<std::uint64_t> TrainedModel::mapped_bytes() const {
  std::vector<std::uint64_t> bytes;
  for (const Parameter* table : store_.tables())
    if (table->mapped() != nullptr) bytes.push_back(table->mapped()->header().file_bytes());
  return bytes;
}

}  // namespace engram
