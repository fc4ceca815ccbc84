#include "apps/training/trained_model.hpp"

#include <charconv>
#include <optional>

#include "apps/json.hpp"
#include "core/error.hpp"
#include "nn/optim/weight_average.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

const std::string& required(const CheckpointFile& file, std::string_view key) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end())
    throw FileError(text("checkpoint: '", file.path().string(), "' must have '", key, "' in its metadata, got none",
                         "\n  it is no checkpoint of Engram; docs/checkpoints.md says what one holds"));
  return found->second;
}

std::int64_t read_step(const CheckpointFile& file) {
  const auto found = file.metadata().find(metadata_keys::kStep);
  if (found == file.metadata().end()) return 0;
  const std::string& written = found->second;
  std::int64_t step = -1;
  const auto [rest, error] = std::from_chars(written.data(), written.data() + written.size(), step);
  if (error != std::errc() || rest != written.data() + written.size() || step < 0)
    throw FileError(text("checkpoint: '", file.path().string(), "' must state its step as a number from 0 on, got '",
                         written, "'"));
  return step;
}

/// Of how many updates the mean weights in a run's checkpoint are; 0: there are none.
std::int64_t averaged_updates(const CheckpointFile& file) {
  const auto found = file.metadata().find(metadata_keys::kRun);
  if (found == file.metadata().end()) return 0;
  const nlohmann::json state = nlohmann::json::parse(found->second, nullptr, /*allow_exceptions=*/false);
  const auto average = state.is_object() ? state.find(kAverageKey) : state.end();
  return average == state.end() || !average->is_object() ? 0 : average->value("updates", std::int64_t{0});
}

/// That of the parameters but for tables, which may be stored in fewer bits: the widest.
DType parameter_dtype(const CheckpointFile& file) {
  std::optional<DType> widest;
  for (const std::string& name : file.names()) {
    if (name.starts_with("optimizer/") || name.starts_with("state/") || name.starts_with(kAveragePrefix)) continue;
    const DType dtype = file.at(name).dtype;
    if (!widest || size_of(dtype) > size_of(*widest)) widest = dtype;
  }
  return widest.value_or(DType::f32);
}

}  // namespace

CheckpointFacts read_facts(const CheckpointFile& file) {
  const std::string& format = required(file, metadata_keys::kFormat);
  if (format != kCheckpointFormat)
    throw FileError(text("checkpoint: '", file.path().string(), "' must be of format ", kCheckpointFormat, ", got '",
                         format, "'\n  it is of another version of Engram"));
  CheckpointFacts facts{.config = parse_run_config(required(file, metadata_keys::kConfig),
                                                   text("the metadata of '", file.path().string(), "'")),
                        .vocabulary = data::Vocabulary::parse(required(file, metadata_keys::kVocabulary), file.path()),
                        .step = read_step(file)};
  if (facts.config.model.vocabulary() == 0) facts.config.model.set_vocabulary(facts.vocabulary.size());
  if (facts.config.model.vocabulary() != facts.vocabulary.size())
    throw FileError(text("checkpoint: '", file.path().string(), "' must have one symbol for each of its model's ",
                         facts.config.model.vocabulary(), ", got a vocabulary of ", facts.vocabulary.size()));
  facts.dtype = parameter_dtype(file);
  return facts;
}

std::vector<NamedTensor> parameter_tensors(const ParameterStore& store) {
  std::vector<NamedTensor> tensors;
  for (const auto& [name, parameter] : store.parameters()) tensors.push_back({name, parameter->value()});
  return tensors;
}

TrainedModel::TrainedModel(const std::filesystem::path& run_or_checkpoint, CheckpointKind kind, Runtime& runtime,
                           DType dtype, const Adapt& adapt)
    : TrainedModel(CheckpointFile(find_checkpoint(run_or_checkpoint, kind)), runtime, dtype, adapt) {}

TrainedModel::TrainedModel(const CheckpointFile& file, Runtime& runtime, DType dtype, const Adapt& adapt)
    : path_(file.path()), facts_(read_facts(file)) {
  if (adapt) adapt(facts_.config.model);
  model_ = make_model(facts_.config.model);
  collect(*model_, store_);
  store_.place(runtime.backend(), dtype, facts_.config.training.seed);
  file.load(runtime.backend(), parameter_tensors(store_),
            {.may_be_absent = {}, .may_be_ignored = {"optimizer/", "state/", "average/"}, .convert_floats = true});
  if (const std::int64_t updates = averaged_updates(file); updates > 0) {
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
    average.swap(runtime.step());
  }
  model_->refresh(runtime.backend());
}

}  // namespace engram
