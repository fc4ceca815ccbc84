#include "apps/run/model/trained_model.hpp"

#include "apps/run/model/frozen_parameters.hpp"
#include "core/error.hpp"
#include "nn/optim/weight_average.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

std::filesystem::path tables_folder(const std::filesystem::path& checkpoint) {
  const std::filesystem::path folder = checkpoint.parent_path();
  return folder.empty() ? "." : folder;
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

TrainedModel::TrainedModel(const std::filesystem::path& run_or_checkpoint, CheckpointKind kind, Runtime& runtime,
                           DType dtype, const Adapt& adapt)
    : TrainedModel(CheckpointFile(find_checkpoint(run_or_checkpoint, kind)), runtime, dtype, adapt) {}

TrainedModel::TrainedModel(const CheckpointFile& file, Runtime& runtime, DType dtype, const Adapt& adapt)
    : path_(file.path()), runtime_(&runtime), facts_(read_facts(file)) {
  facts_.config.model.check_dtype(dtype, "model");
  if (adapt) adapt(facts_.config.model);
  model_ = make_model(facts_.config.model);
  collect(*model_, store_);
  const bool mapped = !facts_.mapped_tables.empty();
  // Frozen parameters have no means.
  const std::int64_t means = updates_of_means(file);
  if (means > 0) freeze_parameters(store_, facts_.config.training.freeze);
  store_.place(runtime.backend(), dtype, facts_.config.training.seed, mapped ? tables_folder(path_) : "");
  if (mapped) check_contents(store_, facts_, path_);
  file.load(runtime.backend(), named_tensors(store_),
            {.may_be_absent = {},
             .may_be_ignored = {std::string(kOptimizerPrefix), std::string(kCachePrefix), std::string(kAveragePrefix)},
             .convert_floats = true});
  averaged_over_ = count_entry(file, metadata_keys::kAveraged, "averaged updates");
  if (means > 0) take_means(file, means);
  model_->refresh(runtime.backend());
}

void TrainedModel::take_means(const CheckpointFile& file, std::int64_t updates) {
  WeightAverage average(store_);
  average.start(runtime_->step());
  std::vector<NamedTensor> means;
  append_average(means, average);
  LoadRules rules{.may_be_absent = {},
                  .may_be_ignored = {std::string(kOptimizerPrefix), std::string(kCachePrefix)},
                  .convert_floats = true};
  for (const NamedTensor& parameter : named_tensors(store_)) rules.may_be_ignored.push_back(parameter.name);
  file.load(runtime_->backend(), means, rules);
  average.restore(updates);
  averaged_over_ = updates;
  average.swap(runtime_->step());
}

std::vector<std::uint64_t> TrainedModel::mapped_bytes() const {
  std::vector<std::uint64_t> bytes;
  for (const Parameter* table : store_.tables())
    if (table->mapped() != nullptr) bytes.push_back(table->mapped()->header().file_bytes());
  return bytes;
}

}  // namespace engram
