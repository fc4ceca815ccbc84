#pragma once
/// Lines of an article as sentences of words: of a file that is prepared, and of a text that a model reads.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/article_rules.hpp"

namespace engram::data {

struct ArticleSentence {
  std::vector<std::string> words;  ///< as written, at least one
  std::int64_t line = 0;           ///< the number of the line that its paragraph, or with sentence_lines it, begins in
  bool ended = true;               ///< false: the text stops inside it
};

class ArticleSentences {
 public:
  using Visit = std::function<void(ArticleSentence& sentence)>;

  /// Of a text in this format, which is not automatic. `visit` gets each sentence as soon as its end is known.
  ArticleSentences(const ArticleRules& rules, ArticleFormat format, Visit visit);

  /// The next line of text, UTF-8, trimmed and not blank. `has_end`: a line end follows it.
  void add_line(std::string_view line, std::int64_t number, bool has_end = true);
  /// What was added last ends here, as at a blank line.
  void end_paragraph();
  /// The text stops here and may go on: its last sentence has ended where sentences are lines if its line has, else if
  /// it looks so by itself (ends_sentence).
  void stop();

  /// Whether words are what is between white space.
  bool pretokenized() const { return pretokenized_; }
  /// Whether a sentence is a line.
  bool sentence_lines() const { return sentence_lines_; }

 private:
  void end_paragraph(bool may_go_on);
  void add_sentence(std::string_view text, std::int64_t line, bool looks_ended, bool ended);

  ArticleFormat format_;
  bool pretokenized_, sentence_lines_;
  Visit visit_;
  std::string paragraph_;
  std::int64_t paragraph_line_ = 0;
  ArticleSentence sentence_;
};

}  // namespace engram::data
