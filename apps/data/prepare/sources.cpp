#include "apps/data/prepare/sources.hpp"

#include <algorithm>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "core/error.hpp"
#include "core/files/list_folder.hpp"

namespace engram::data {

namespace fs = std::filesystem;

std::vector<fs::path> source_paths(const PrepareOptions& options) {
  const std::array<const fs::path*, 3> files{&options.train, &options.valid, &options.test};
  const auto given = std::count_if(files.begin(), files.end(), [](const fs::path* path) { return !path->empty(); });
  if (options.text.empty() == (given == 0))
    throw UsageError(text("prepare: either --text or --train, --valid and --test must be given, got ",
                          given == 0 ? "neither" : "both"));
  if (given == 0) return {options.text};
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i]->empty())
      throw UsageError(text("prepare: --train, --valid and --test must be given together, got no --", kSplitNames[i],
                            "\n  to split one file use --text"));
  if (options.split) throw UsageError("prepare: --split works with --text, got it with --train, --valid and --test");
  return {options.train, options.valid, options.test};
}

std::vector<Source> read_sources(const PrepareOptions& options) {
  std::vector<Source> sources;
  for (const fs::path& path : source_paths(options)) {
    options.watch.begin(text("reading '", path.string(), "'"));
    sources.push_back({path.string(), read_bytes(path, Pipes::read, kLargestPipe, options.watch.at)});
  }
  return sources;
}

std::vector<fs::path> shards_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : list_folder(path))
    if (entry.is_regular_file() && !entry.path().filename().string().starts_with('.')) files.push_back(entry.path());
  std::ranges::sort(files);
  if (files.empty())
    throw FileError(text("prepare: a folder of texts must have a file in it, got none in '", path.string(), "'"));
  return files;
}

std::array<Source, 3> three(std::vector<Source> sources) {
  return {std::move(sources[0]), std::move(sources[1]), std::move(sources[2])};
}

std::vector<SourceFacts> facts_of(const std::vector<Source>& sources) {
  std::vector<SourceFacts> facts;
  for (const Source& source : sources) facts.push_back({source.name, std::ssize(source.bytes), hash_of(source.bytes)});
  return facts;
}

}  // namespace engram::data
