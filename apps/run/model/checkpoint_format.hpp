#pragma once
/// What stands in a checkpoint beside the model's tensors: the names of other tensors, and the metadata, written and
/// read. docs/reference/checkpoints.md describes it.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/data/text/text_rules.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"
#include "apps/run/config/run_config.hpp"
#include "nn/checkpoint.hpp"
#include "nn/optim/named_tensors.hpp"
#include "nn/optim/weight_average.hpp"

namespace engram {

/// Keys of a checkpoint's metadata.
namespace metadata_keys {
inline constexpr std::string_view kFormat = "engram.format";          ///< "1"
inline constexpr std::string_view kConfig = "engram.config";          ///< TOML, all keys
inline constexpr std::string_view kVocabulary = "engram.vocabulary";  ///< the contents of vocabulary.json
inline constexpr std::string_view kStep = "engram.step";              ///< optimiser steps done
inline constexpr std::string_view kSeed = "engram.seed";
inline constexpr std::string_view kData = "engram.data";                  ///< hash of the data set
inline constexpr std::string_view kRun = "engram.run";                    ///< JSON: readers, caches, best validation
inline constexpr std::string_view kAveraged = "engram.averaged_updates";  ///< of which the parameters are the mean
inline constexpr std::string_view kFrom = "engram.from";  ///< JSON: the weights that training began with
inline constexpr std::string_view kText = "engram.text";  ///< JSON: how text became words (data/text_rules.hpp)
/// JSON: tables that are in mapped files beside the checkpoint, and "crc32:" and eight digits of their contents.
inline constexpr std::string_view kTables = "engram.tables";
}  // namespace metadata_keys
inline constexpr std::string_view kCheckpointFormat = "1";
/// Beginnings of the names of tensors that are no parameters, beside kOptimizerPrefix: caches, mean weights.
inline constexpr std::string_view kCachePrefix = "state/", kAveragePrefix = "average/";
/// Members of kRun: what is known of the mean weights, such as their "updates"; how many steps come before fine-tuning,
/// where that is not what the configuration says.
inline constexpr std::string_view kAverageKey = "average", kFinetuneKey = "finetune_after";
/// Member of kRun: the means over an evaluation of spans that are computed for every query, a list for each layer.
inline constexpr std::string_view kSpanMeansKey = "span_means";

/// Whether a tensor of this name is a parameter.
bool is_parameter_name(std::string_view name);

/// The metadata that every model has: format, configuration, vocabulary, step.
Metadata model_metadata(const RunConfig& config, const data::Vocabulary& vocabulary, std::int64_t step);
/// model_metadata() of a model that was made for these data, with what they are and the seed.
Metadata model_metadata(const RunConfig& config, const data::DataSet& data, std::int64_t step);

/// Appends the mean weights under kAveragePrefix.
void append_average(std::vector<NamedTensor>& tensors, const WeightAverage& average);

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

/// Of how many updates the mean weights beside a run's weights are; 0: there are none.
std::int64_t updates_of_means(const CheckpointFile& file);

/// The checksum of a mapped table as kTables has it.
std::string contents_text(std::uint32_t contents);
/// An entry of the metadata. Throws FileError with this `advice` where there is none.
const std::string& required_entry(const CheckpointFile& file, std::string_view key, std::string_view advice);
/// An entry of the metadata that is a number from 0 on; 0 where there is none. Throws FileError, naming it as `what`,
/// for anything else.
std::int64_t count_entry(const CheckpointFile& file, std::string_view key, std::string_view what);

}  // namespace engram
