#pragma once
/// What subwords are made of: the lines of three splits, read from files as often as is needed.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/files/prepare_watch.hpp"
#include "apps/data/prepare/options.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/prepare/summary.hpp"

namespace engram::data {

class SubwordTexts {
 public:
  virtual ~SubwordTexts() = default;

  /// What is known of a split before it has tokens: its sources, bytes and words, and how many articles it has.
  virtual SplitSummary summary(std::size_t split) const = 0;
  virtual std::vector<SourceFacts> sources() const = 0;
  /// What the user should be told, one sentence each.
  virtual std::vector<std::string> notes() const = 0;
  /// What all files of articles were read as; none: as several, or there are no articles.
  virtual std::optional<ArticleFormat> article_format() const { return std::nullopt; }
  /// Calls `line` with the lines of a split in their order, without their ends, and of articles `article` before the
  /// first line of each. Throws FileError for a file that has changed since it was read first.
  virtual void read(std::size_t split, const std::function<void(std::string_view line)>& line,
                    const std::function<void()>& article, const ByteWatch& watch) const = 0;
};

/// One text, which is split, or a file or folder of shards for each split. Throws as StreamedText and source_paths.
std::unique_ptr<SubwordTexts> open_plain_texts(const PrepareOptions& options);
/// Articles: no article is in two splits, nor two of the same lines. Throws UsageError for options that are not for
/// articles of subwords, and as given_articles and read_article_lines.
std::unique_ptr<SubwordTexts> open_article_texts(const PrepareOptions& options);

}  // namespace engram::data
