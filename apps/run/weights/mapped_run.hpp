#pragma once
/// Run folders whose tables are in mapped files (core/files/table_file.hpp), for evaluation with less memory than the
/// tables take: OUT/config.toml, OUT/checkpoint/model.safetensors with all other parameters and without the state of
/// training, and OUT/checkpoint/TABLE.table. No table is ever in memory as a whole. The checkpoint is written last:
/// what is broken off leaves no run.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config.hpp"
#include "core/files/table_file.hpp"
#include "nn/checkpoint.hpp"

namespace engram {

struct MappedRun {
  struct Table {
    std::filesystem::path path;
    TableHeader header;
  };
  std::filesystem::path checkpoint;
  std::vector<Table> tables;  ///< by name

  std::uint64_t bytes() const;
};

/// A line for each file.
std::string table_of(const MappedRun& mapped);
nlohmann::json json_of(const MappedRun& mapped);
/// The size of a table: "262144 x 512 f32, 0.50 GiB".
std::string described(const TableHeader& table);

/// Told about every table before it is written.
using TableNews = std::function<void(const std::string& name, const TableHeader&)>;
/// Told how many bytes of the tables' numbers have been written so far, and how many all of them are.
using TableWatch = std::function<void(std::int64_t written, std::int64_t all)>;

/// From a trained model, `run_or_checkpoint` as find_checkpoint() takes it. Throws FileError when it or its tensors are
/// not what its configuration says, when `out` cannot be written or its disk has no room, and UsageError when there is
/// a run in `out` or the model has no tables or mapped ones already.
MappedRun map_run(const std::filesystem::path& run_or_checkpoint, CheckpointKind kind, const std::filesystem::path& out,
                  const TableNews& news = {}, const TableWatch& watch = {});

/// A model as training would start it, to the bit, with the seed of its configuration, which must be resolved.
/// `threads` of the host draw values; 0: all. Throws as map_run() does.
MappedRun map_new_model(const RunConfig& config, const data::DataSet& data, const std::filesystem::path& out,
                        int threads = 0, const TableNews& news = {}, const TableWatch& watch = {});

}  // namespace engram
