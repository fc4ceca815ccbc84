#pragma once
/// A model read from a checkpoint, for everything that uses one without training it. Only the parameters, the
/// configuration and the vocabulary are needed (docs/checkpoints.md), so checkpoints of other programs work too.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/text_tokens.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"
#include "apps/run/config/run_config.hpp"
#include "apps/run/model/runtime.hpp"
#include "autograd/parameter_store.hpp"
#include "nn/checkpoint.hpp"
#include "nn/models/language_model.hpp"

namespace engram {

/// Keys of a checkpoint's metadata.
namespace metadata_keys {
inline constexpr std::string_view kFormat = "engram.format";          ///< "1"
inline constexpr std::string_view kConfig = "engram.config";          ///< TOML, all keys
inline constexpr std::string_view kVocabulary = "engram.vocabulary";  ///< the contents of vocabulary.json
inline constexpr std::string_view kStep = "engram.step";              ///< optimiser steps done
inline constexpr std::string_view kSeed = "engram.seed";
inline constexpr std::string_view kThreads = "engram.threads";
inline constexpr std::string_view kData = "engram.data";                  ///< hash of the data set
inline constexpr std::string_view kRun = "engram.run";                    ///< JSON: readers, caches, best validation
inline constexpr std::string_view kAveraged = "engram.averaged_updates";  ///< of which the parameters are the mean
inline constexpr std::string_view kText = "engram.text";  ///< JSON: how text became words (data/text_rules.hpp)
/// JSON: tables that are in mapped files beside the checkpoint, and "crc32:" and eight digits of their contents.
inline constexpr std::string_view kTables = "engram.tables";
}  // namespace metadata_keys
inline constexpr std::string_view kCheckpointFormat = "1";
/// Tensors of mean weights, and the member of kRun that says of how many updates they are.
inline constexpr std::string_view kAveragePrefix = "average/", kAverageKey = "average";

/// What a checkpoint says about its model.
struct CheckpointFacts {
  RunConfig config;             ///< with the vocabulary's size
  data::Vocabulary vocabulary;  ///< the one that it was trained with
  data::TextRules text{};       ///< of its data, as far as the file says
  std::int64_t step = 0;        ///< optimiser steps; 0 when the file does not say
  DType dtype = DType::f32;     ///< of the parameters
  /// Tables in mapped files (core/files/table_file.hpp) in the checkpoint's folder, and the checksums of their
  /// contents.
  std::map<std::string, std::uint32_t> mapped_tables;
};
/// Throws FileError for a file of another format, or one without configuration or vocabulary.
CheckpointFacts read_facts(const CheckpointFile& file);

/// The checksum of a mapped table as kTables has it.
std::string contents_text(std::uint32_t contents);

/// Every parameter with its name, sharing the store's memory; without tables in mapped files.
std::vector<NamedTensor> parameter_tensors(const ParameterStore& store);

class TrainedModel {
 public:
  /// Changes options that have no influence on the parameters.
  using Adapt = std::function<void(ModelOptions&)>;
  /// `run_or_checkpoint` as find_checkpoint() takes it. Parameters are converted to `dtype` (f32 or f64), but for
  /// tables in mapped files, which stay there. Throws FileError when it cannot be read or does not fit its own
  /// configuration, DeviceError for mapped tables on another device than the CPU, UsageError for f64 and tables of
  /// bf16.
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
  /// For commands that are about this family alone; throws UsageError for another.
  AllAttentionModel& all_attention(std::string_view command) { return require_all_attention(*model_, command); }
  ParameterStore& store() { return store_; }
  /// Sizes of the mapped files, if tables are in some.
  std::vector<std::uint64_t> mapped_bytes() const;

 private:
  TrainedModel(const CheckpointFile& file, Runtime& runtime, DType dtype, const Adapt& adapt);

  std::filesystem::path path_;
  CheckpointFacts facts_;
  std::int64_t averaged_over_ = 0;
  ParameterStore store_;  // before the model, whose parameters have their memory here
  std::unique_ptr<LanguageModel> model_;
};

}  // namespace engram
