#include "apps/data/text/cbt.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "apps/data/text/line_words.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  using Piece = LineWordReader::Piece;
  LineWordReader reader(text);
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next())
    if (piece == Piece::word) words.emplace_back(reader.word());
  return words;
}

bool is_blank(std::string_view line) { return count_words(line) == 0; }

/// Takes the number at the beginning of a line away; nothing for a line without one before white space.
std::optional<std::int64_t> take_number(std::string_view& line) {
  while (!line.empty() && white_space_length(line) > 0) line.remove_prefix(white_space_length(line));
  constexpr std::size_t kMostDigits = 9;
  std::int64_t number = 0;
  std::size_t digits = 0;
  for (; digits < line.size() && line[digits] >= '0' && line[digits] <= '9' && digits <= kMostDigits; ++digits)
    number = 10 * number + (line[digits] - '0');
  const std::string_view rest = line.substr(digits);
  if (digits == 0 || digits > kMostDigits || (!rest.empty() && white_space_length(rest) == 0)) return std::nullopt;
  line = rest;
  return number;
}

std::vector<std::string_view> split_at(std::string_view text, char between) {
  std::vector<std::string_view> fields;
  for (;;) {
    const std::size_t end = text.find(between);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

/// The beginning of a line for a message.
std::string shown(std::string_view line) {
  constexpr std::size_t kMost = 40;
  return line.size() <= kMost ? text("'", line, "'") : text("'", line.substr(0, kMost), "..'");
}

}  // namespace

std::string_view rule_of(CbtProblem problem) {
  constexpr std::array<std::string_view, kCbtProblems> kRules{
      "the lines of a block must be numbered 1 to 21 in order",
      "a file must not end inside a block",
      "line 21 must be the query, a tab, the answer, two tabs and the candidates",
      "XXXXX must be a word by itself",
      "a query must have the word XXXXX",
      "a query must have the word XXXXX once",
      "there must be 10 candidates with | between them",
      "no candidate may be empty",
      "every candidate must be one word",
      "candidates must differ",
      "the answer must be one of the candidates"};
  return kRules.at(static_cast<std::size_t>(problem));
}

CbtReader::CbtReader(std::filesystem::path path, bool lenient) : lines_(std::move(path)), lenient_(lenient) {}

bool CbtReader::next(CbtQuestion& question) {
  while (lines_.next(line_)) {
    if (is_blank(line_)) continue;
    ++block_;
    question.block = block_;
    question.line = lines_.number();
    const std::optional<Problem> found = read_block(question);
    if (!found) return true;
    if (!lenient_)
      throw FileError(text("cbt: ", rule_of(found->problem), ", got ", found->fact, " in block ", block_, ", ",
                           lines_.place(), "\n  --lenient leaves such blocks out and counts them"));
    ++skipped_[static_cast<std::size_t>(found->problem)];
    skip_block();
  }
  return false;
}

std::optional<CbtReader::Problem> CbtReader::read_block(CbtQuestion& question) {
  constexpr auto kQuery = static_cast<std::int64_t>(CbtQuestion::kSentences) + 1;
  for (std::int64_t number = 1;; ++number) {
    std::string_view rest = line_;
    if (is_blank(rest)) return Problem{CbtProblem::numbers, text("an empty line where ", number, " should be")};
    if (take_number(rest) != number)
      return Problem{CbtProblem::numbers, text(shown(line_), " where ", number, " should be")};
    if (number == kQuery) return read_query(rest, question);
    question.sentences.at(static_cast<std::size_t>(number) - 1) = words_of(rest);
    if (!lines_.next(line_)) return Problem{CbtProblem::ends_early, text("its end after line ", number, " of 21")};
  }
}

std::optional<CbtReader::Problem> CbtReader::read_query(std::string_view line, CbtQuestion& question) const {
  const std::vector<std::string_view> fields = split_at(line, '\t');
  constexpr std::size_t kFields = 4;
  if (fields.size() != kFields)
    return Problem{CbtProblem::tabs, text(fields.size() - 1, fields.size() == 2 ? " tab" : " tabs")};
  if (!is_blank(fields[2])) return Problem{CbtProblem::tabs, text(shown(fields[2]), " between the two tabs")};

  question.query = words_of(fields[0]);
  std::int64_t blanks = 0;
  for (std::size_t i = 0; i < question.query.size(); ++i) {
    if (question.query[i] != CbtQuestion::kBlank) continue;
    question.blank = i;
    ++blanks;
  }
  for (const std::string& word : question.query)
    if (word != CbtQuestion::kBlank && word.find(CbtQuestion::kBlank) != std::string::npos)
      return Problem{CbtProblem::blank_glued, text("'", word, "'")};
  if (blanks == 0) return Problem{CbtProblem::blank_missing, "none"};
  if (blanks > 1) return Problem{CbtProblem::blank_repeated, text("it ", blanks, " times")};

  if (auto problem = read_candidates(fields[3], question)) return problem;
  const std::vector<std::string> answer = words_of(fields[1]);
  question.answer = answer.size() == 1 ? answer[0] : std::string();
  const auto found = std::ranges::find(question.candidates, question.answer);
  if (found == question.candidates.end())
    return Problem{CbtProblem::answer_missing, text("'", fields[1], "' and ", shown(fields[3]))};
  question.answer_index = static_cast<std::size_t>(found - question.candidates.begin());
  return std::nullopt;
}

std::optional<CbtReader::Problem> CbtReader::read_candidates(std::string_view field, CbtQuestion& question) const {
  const std::vector<std::string_view> given = split_at(field, '|');
  if (given.size() != CbtQuestion::kCandidates) return Problem{CbtProblem::candidate_count, text(given.size())};
  for (std::size_t i = 0; i < given.size(); ++i) {
    std::vector<std::string> words = words_of(given[i]);
    if (words.empty()) return Problem{CbtProblem::candidate_empty, text("candidate ", i + 1, " empty")};
    if (words.size() > 1) return Problem{CbtProblem::candidate_not_a_word, text("'", given[i], "'")};
    const auto end = question.candidates.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(question.candidates.begin(), end, words[0]) != end)
      return Problem{CbtProblem::candidate_repeated, text("'", words[0], "' twice")};
    question.candidates.at(i) = std::move(words[0]);
  }
  return std::nullopt;
}

void CbtReader::skip_block() {
  // Where it was an empty line that was wrong, this is the one.
  while (!is_blank(line_) && lines_.next(line_)) continue;
}

std::int64_t CbtReader::skipped() const { return std::accumulate(skipped_.begin(), skipped_.end(), std::int64_t{0}); }

std::string CbtReader::skipped_text() const {
  std::string lines;
  for (std::size_t i = 0; i < kCbtProblems; ++i)
    if (skipped_.at(i) > 0)
      lines += text(skipped_.at(i), skipped_.at(i) == 1 ? " block" : " blocks",
                    " left out: ", rule_of(static_cast<CbtProblem>(i)), "\n");
  return lines;
}

}  // namespace engram::data
