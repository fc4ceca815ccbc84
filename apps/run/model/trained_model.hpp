#pragma once
/// A model read from a checkpoint, for everything that uses one without training it. Only the parameters, the
/// configuration and the vocabulary are needed (docs/reference/checkpoints.md), so checkpoints of other programs work
/// too.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/text_tokens.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/model/placed_model.hpp"

namespace engram {

class TrainedModel {
 public:
  /// Changes options that have no influence on the parameters.
  using Adapt = std::function<void(ModelOptions&)>;
  /// `run_or_checkpoint` as find_checkpoint() takes it. Parameters are converted to `dtype` (f32 or f64), but for
  /// tables in mapped files, which stay there. The runtime must outlive this. Throws FileError when it cannot be read
  /// or does not fit its own configuration, DeviceError for mapped tables on another device than the CPU, UsageError
  /// for f64 and tables of bf16.
  TrainedModel(const std::filesystem::path& run_or_checkpoint, CheckpointKind kind, Runtime& runtime,
               DType dtype = DType::f32, const Adapt& adapt = {});

  const std::filesystem::path& path() const { return path_; }  ///< the file
  const RunConfig& config() const { return facts_.config; }
  const data::Vocabulary& vocabulary() const { return facts_.vocabulary; }
  /// How it reads a text of words, with `unseen` for those that it does not know. Refers to this.
  data::TextReading reading(data::UnseenWords unseen) const { return {facts_.vocabulary, facts_.text, unseen}; }
  std::int64_t step() const { return facts_.step; }
  /// Of how many updates its weights are the mean; 0: they are those of the last one, or the file does not say.
  std::int64_t averaged_over() const { return averaged_over_; }
  DType dtype() const { return store_.dtype(); }
  LanguageModel& model() { return *model_; }
  PlacedModel placed() { return {*model_, *runtime_, dtype()}; }
  /// placed(), where the model is known to be of this class. Throws std::bad_cast when it is not.
  template <class Model>
  Placed<Model> placed_as() {
    return {dynamic_cast<Model&>(*model_), *runtime_, dtype()};
  }
  ParameterStore& store() { return store_; }
  /// Sizes of the mapped files, if tables are in some.
  std::vector<std::uint64_t> mapped_bytes() const;

 private:
  TrainedModel(const CheckpointFile& file, Runtime& runtime, DType dtype, const Adapt& adapt);

  /// The weights become the means that the file has beside them: a run whose weights are averaged is judged by those.
  void take_means(const CheckpointFile& file, std::int64_t updates);

  std::filesystem::path path_;
  Runtime* runtime_;
  CheckpointFacts facts_;
  std::int64_t averaged_over_ = 0;
  ParameterStore store_;  // before the model, whose parameters have their memory here
  std::unique_ptr<LanguageModel> model_;
};

}  // namespace engram
