#pragma once
/// Questions of the Children's Book Test (Hill, Bordes, Chopra and Weston, 2016; [key-value-predict 5.3]). A block
/// is 20 numbered sentences, then the query with a blank, its answer and ten candidates, and an empty line:
///
///   1 Once there was a cat .
///   ...
///   20 He was hungry .
///   21 The XXXXX ate the mouse .<tab>cat<tab><tab>cat|cow|dog|egg|fox|hat|hen|owl|pig|rat
///
/// Words are what is between white space, as they are in the file. Lines may end in "\r\n"; an empty line may be
/// missing between blocks and at the end. The books themselves are read as articles: ArticleFormat::cbt.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/text_lines.hpp"

namespace engram::data {

struct CbtQuestion {
  static constexpr std::size_t kSentences = 20, kCandidates = 10;
  static constexpr std::string_view kBlank = "XXXXX";

  std::array<std::vector<std::string>, kSentences> sentences;
  std::vector<std::string> query;  ///< kBlank among the words
  std::size_t blank = 0;           ///< its place in the query
  std::string answer;
  std::array<std::string, kCandidates> candidates;  ///< in the order of the file
  std::size_t answer_index = 0;                     ///< of the answer among them
  std::int64_t block = 0;                           ///< number in the file, from 1; skipped ones count
  std::int64_t line = 0;                            ///< of its first line, from 1
};

/// What can be wrong with a block. Where several things are, the first of them in this order is told.
enum class CbtProblem : std::uint8_t {
  numbers,          ///< lines are not numbered 1 to 21 in their order
  ends_early,       ///< the file ends inside the block
  tabs,             ///< line 21 has not query, answer, nothing and candidates with tabs between them
  blank_glued,      ///< XXXXX is a part of a word, as in "XXXXX."
  blank_missing,    ///< no XXXXX in the query
  blank_repeated,   ///< several
  candidate_count,  ///< not ten
  candidate_empty,
  candidate_not_a_word,  ///< more than one word
  candidate_repeated,
  answer_missing,  ///< the answer is no candidate
};
inline constexpr std::size_t kCbtProblems = 11;
/// What the rule is that was broken: "lines must be numbered 1 to 21 in order".
std::string_view rule_of(CbtProblem problem);

/// Reads a file of questions block by block.
class CbtReader {
 public:
  /// `lenient`: blocks with a problem are left out and counted; reading goes on behind the next empty line. Throws as
  /// TextLines.
  explicit CbtReader(std::filesystem::path path, bool lenient = false);

  /// The next question; false at the end of the file. Throws FileError naming file, line and block for a block with a
  /// problem, unless the reader is lenient: the line is the last one that was read. Throws as TextLines::next().
  bool next(CbtQuestion& question);

  /// Blocks that were left out because of a problem.
  std::int64_t skipped(CbtProblem problem) const { return skipped_[static_cast<std::size_t>(problem)]; }
  /// Because of any.
  std::int64_t skipped() const;
  /// "3 blocks left out: lines must be numbered ..", a line for every problem that there was; empty without any.
  std::string skipped_text() const;
  /// Blocks so far, with those left out.
  std::int64_t blocks() const { return block_; }
  /// Bytes so far that were no UTF-8 and became U+FFFD.
  std::int64_t replaced() const { return lines_.replaced(); }

 private:
  struct Problem {
    CbtProblem problem;
    std::string fact;
  };
  /// Reads the block that the line begins, and says what is wrong with it.
  std::optional<Problem> read_block(CbtQuestion& question);
  std::optional<Problem> read_query(std::string_view line, CbtQuestion& question) const;
  std::optional<Problem> read_candidates(std::string_view field, CbtQuestion& question) const;
  void skip_block();

  TextLines lines_;
  bool lenient_;
  std::string line_;
  std::int64_t block_ = 0;
  std::array<std::int64_t, kCbtProblems> skipped_{};
};

}  // namespace engram::data
