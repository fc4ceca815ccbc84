#pragma once
/// What a page shows of a run's checkpoint: how its heads look back, what it writes, its memories and tensors.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/model/checkpoint_format.hpp"
#include "apps/studies/page/attention_maps.hpp"
#include "apps/studies/page/tensor_statistics.hpp"
#include "apps/studies/page/text_samples.hpp"
#include "apps/studies/product_keys/product_key_report.hpp"
#include "apps/studies/spans/head_spans.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/device.hpp"

namespace engram {

struct StudyRequest {
  std::string data;          ///< folder; empty: the one that the run was trained with, if it is there
  std::string text;          ///< that attention is shown of; empty: the beginning of the data's valid split
  bool runs_model = true;    ///< else nothing is computed with it
  std::int64_t length = 80;  ///< tokens of a sample
  std::int64_t read = 8000;  ///< tokens of the valid split that memories read
  Device device{};
  int threads = 0;  ///< 0: all
};

struct CheckpointStudy {
  std::filesystem::path path;
  std::optional<CheckpointFacts> facts;  ///< none: it could not be read
  std::vector<TensorStatistics> tensors;
  std::int64_t parameter_bytes = 0, optimizer_bytes = 0, other_bytes = 0;  ///< in the file
  std::optional<SpanStatistics> spans;                                     ///< of adaptive spans
  std::filesystem::path data;                                              ///< that was read; empty: none
  std::optional<AttentionMaps> attention;
  std::vector<TextSample> samples;
  std::optional<ProductKeyReport> memories;
  std::string no_attention;           ///< why there are no maps, a part of a sentence
  std::vector<std::string> problems;  ///< a line for each part that could not be made
};

/// Where a run's data may be: what its command named, seen from the folder `directory` that it was given in (empty: not
/// known), from here, or from a folder that the run lies in. A folder that is there; empty: none.
std::filesystem::path find_run_data(const std::vector<std::string>& command, const std::filesystem::path& directory,
                                    const std::filesystem::path& run_folder);

/// Throws nothing but what ends the program: a part that cannot be made is a problem. `data`: where the run's own data
/// are, empty for none; `progress` tells how far it is.
CheckpointStudy study_checkpoint(const std::filesystem::path& checkpoint, const StudyRequest& request,
                                 const std::filesystem::path& data, WorkProgress& progress);

}  // namespace engram
