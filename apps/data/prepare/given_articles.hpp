#pragma once
/// The files of articles that options name.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "apps/data/prepare/options.hpp"
#include "apps/data/text/article_text.hpp"

namespace engram::data {

/// Files and folders, and whether they are the three splits; else their articles are split.
struct GivenArticles {
  std::vector<std::filesystem::path> paths;
  bool are_splits = false;
};

/// The paths behind --articles, of which one may be a folder of three splits, or train, valid and test. Throws
/// UsageError for both and for neither, and for options of a split where there is one already; FileError for a folder
/// of three splits with something else in it.
GivenArticles given_articles(const PrepareOptions& options);

/// Bytes of the files together; 0 where one of them does not say.
std::int64_t bytes_of(const std::vector<NamedFile>& files);

}  // namespace engram::data
