#include "apps/data/prepare/given_articles.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/data/prepare/sources.hpp"
#include "apps/data/text/corpus.hpp"
#include "core/error.hpp"
#include "core/files/list_folder.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

}  // namespace

GivenArticles given_articles(const PrepareOptions& options) {
  const ArticleRules& rules = *options.articles;
  const bool has_files = !options.train.empty() || !options.valid.empty() || !options.test.empty();
  if (rules.paths.empty() == !has_files)
    throw UsageError(text("prepare: articles must be given as paths behind --articles, or as --train, --valid and ",
                          "--test, got ", has_files ? "both" : "neither"));
  if (rules.held_out && (options.split || has_files))
    throw UsageError(text("prepare: --held-out says how many articles are valid and test, got ",
                          options.split ? "--split" : "--train, --valid and --test", " with it"));
  GivenArticles given{rules.paths, has_files};
  if (has_files) given.paths = source_paths(options);
  if (given.paths.size() != 1 || has_files) return given;
  // A folder of the three splits.
  const fs::path folder = given.paths[0];
  std::vector<fs::path> splits;
  std::string foreign;
  for (const std::string_view split : kSplitNames)
    if (is_folder(folder / split)) splits.push_back(folder / split);
  if (splits.size() < kSplitNames.size()) return given;
  for (const fs::directory_entry& entry : list_folder(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with('.') && std::ranges::find(kSplitNames, name) == kSplitNames.end()) foreign = name;
  }
  if (!foreign.empty())
    throw FileError(text("prepare: a folder with train, valid and test in it must have nothing else, got '", foreign,
                         "' in '", folder.string(), "'\n  --train, --valid and --test name the splits one by one"));
  if (options.split || rules.held_out)
    throw UsageError(text("prepare: ", options.split ? "--split" : "--held-out",
                          " works with articles that have no splits, got '", folder.string(),
                          "' with train, valid and test"));
  return {std::move(splits), true};
}

std::int64_t bytes_of(const std::vector<NamedFile>& files) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (const NamedFile& file : files) {
    const std::uintmax_t size = fs::is_regular_file(file.path, error) ? fs::file_size(file.path, error) : 0;
    if (error || size == 0) return 0;
    bytes += static_cast<std::int64_t>(size);
  }
  return bytes;
}

}  // namespace engram::data
