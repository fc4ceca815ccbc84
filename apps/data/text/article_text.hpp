#pragma once
/// Files of articles as sentences of words ([key-value-predict 5.2, 5.3]). Files may be larger than memory; a
/// paragraph may not.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/article_rules.hpp"

namespace engram::data {

/// Gets what is in files of articles.
class ArticleSink {
 public:
  virtual ~ArticleSink() = default;
  /// What follows is of this article. Nothing may follow: the article is empty. `goes_on`: a chapter of the book that
  /// the article before is of, which is in the same split; only books have chapters.
  virtual void begin_article(std::string name, bool goes_on) = 0;
  /// A line of the present article: its bytes, with a line end of one, and words between white space.
  virtual void add_text(std::int64_t bytes, std::int64_t words) = 0;
  /// A sentence of the present article, of at least one word; words may be moved from.
  virtual void add_sentence(std::vector<std::string>& words) = 0;
};

/// Gets the lines of articles as they are.
class ArticleLineSink {
 public:
  virtual ~ArticleLineSink() = default;
  /// What follows is of another article than what was before. Nothing may follow: the article is empty.
  virtual void begin_article() = 0;
  /// A line of the present article that is not blank, without white space around it. `bytes` are those of the file's
  /// line, with a line end of one, and `words` what is between white space.
  virtual void add_line(std::string_view line, std::int64_t bytes, std::int64_t words) = 0;
};

struct ArticleFileFacts {
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;                           ///< of the bytes
  std::int64_t replaced = 0;                        ///< bytes that were no UTF-8
  ArticleFormat format = ArticleFormat::automatic;  ///< what it was read as, never automatic
};

/// Reads a file. `name` is what the article is called that is all of the file; others are called by their titles, and
/// those without one by `name` and their number. Throws FileError naming file and line for a line of more than
/// TextLines::kLongest bytes, the word kSentenceEnd, text that belongs to no article, and lines "<doc" and "</doc>"
/// that do not pair; and for a file that cannot be read.
ArticleFileFacts read_articles(const std::filesystem::path& path, std::string_view name, const ArticleRules& rules,
                               bool lower, ArticleSink& sink);

/// Reads the lines of a file of articles, which begin as `format` says; it may not be that of chapters. Throws as
/// read_articles does, but that no word is refused.
ArticleFileFacts read_article_lines(const std::filesystem::path& path, ArticleFormat format, ArticleLineSink& sink);

/// A file below a given path, or that path itself.
struct NamedFile {
  std::filesystem::path path;
  std::string name;  ///< the path below the folder, or the file's own name
};
/// The file, or all files below the folder by the bytes of their names; what begins with "." is left out. Throws
/// FileError for a folder without files and for what is neither.
std::vector<NamedFile> article_files(const std::filesystem::path& path);

}  // namespace engram::data
