#pragma once
/// The files that data are prepared from.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/data/prepare/options.hpp"
#include "apps/data/text/corpus.hpp"

namespace engram::data {

/// The files that the options name: one text, or train, valid and test. Throws UsageError unless they name one of
/// these.
std::vector<std::filesystem::path> source_paths(const PrepareOptions& options);
/// Reads the files of source_paths(): one text, or train, valid and test. Throws UsageError unless they name one of
/// these, FileError for a file that cannot be read.
std::vector<Source> read_sources(const PrepareOptions& options);
/// The file itself, or all files of a folder by name, those of its own folders and what begins with "." not among them.
/// Throws FileError for a folder without files.
std::vector<std::filesystem::path> shards_of(const std::filesystem::path& path);
/// Three sources as an array.
std::array<Source, 3> three(std::vector<Source> sources);

/// What data.json says about a file that was read.
struct SourceFacts {
  std::string name;
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;  ///< of its bytes
};
std::vector<SourceFacts> facts_of(const std::vector<Source>& sources);

}  // namespace engram::data
