#pragma once
/// Books and questions in the form of the Children's Book Test, the same on every machine.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/data/prepare/prepare.hpp"
#include "apps/studies/cbt/question_tokens.hpp"
#include "core/error.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::cbt {

inline constexpr std::int64_t kWords = 40;
inline std::string word(std::int64_t i) { return text("w", i); }

/// A sentence of some words, and one of them a number.
inline std::string sentence(reference::RandomArrays& random, std::int64_t words) {
  std::string line;
  for (std::int64_t i = 0; i < words; ++i) line += word(random.below(kWords)) + " ";
  return line + "19 .";
}

inline std::string book(std::uint64_t seed, int lines) {
  reference::RandomArrays random(seed);
  std::string text = "_BOOK_TITLE_ : A book\n";
  // All words once, however short the book is.
  for (std::int64_t i = 0; i < kWords; ++i) text += word(i) + " ";
  for (int line = 0; line < lines; ++line) text += "\n" + sentence(random, 1 + random.below(8));
  return text + "\n";
}

/// A block of the questions' format. The blank is the last word of the query where `tail` is 0.
inline std::string block(std::uint64_t seed, std::size_t answer, std::int64_t tail) {
  reference::RandomArrays random(seed);
  std::string text;
  for (int i = 1; i <= 20; ++i) text += engram::text(i, " ", sentence(random, random.below(6)), "\n");
  text += "21 ";
  for (std::int64_t i = random.below(4); i > 0; --i) text += word(random.below(kWords)) + " ";
  text += "XXXXX";
  for (std::int64_t i = 0; i < tail; ++i) text += " " + word(random.below(kWords));
  std::string candidates;
  for (std::size_t i = 0; i < 10; ++i) {
    // Two that no book has.
    const std::string candidate = i == 4 ? "Zorro" : i == 7 ? "zebra" : word(static_cast<std::int64_t>(3 * i));
    if (i == answer) text += "\t" + candidate + "\t\t";
    candidates += (i > 0 ? "|" : "") + candidate;
  }
  return text + candidates + "\n\n";
}

/// Questions of several lengths, with the blank in several places.
inline std::string question_file(std::int64_t tails) {
  std::string text;
  for (std::size_t i = 0; i < 11; ++i) text += block(100 + i, i % 10, tails > 0 ? std::int64_t(i) % tails : 0);
  return text;
}

struct CbtFolder : TemporaryFolder {
  explicit CbtFolder(bool sentence_end = true) {
    data::PrepareOptions options;
    options.kind = data::TokenKind::word;
    options.articles.emplace();
    options.articles->format = data::ArticleFormat::cbt;
    options.articles->sentence_end = sentence_end;
    options.train = put_file(*this / "train.txt", book(1, 60));
    options.valid = put_file(*this / "valid.txt", book(2, 20));
    options.test = put_file(*this / "test.txt", book(3, 20));
    options.out = *this / "data";
    data::prepare(options);
  }
  data::DataSet data() const { return data::DataSet::open(*this / "data"); }

  std::vector<TokenQuestion> questions(std::int64_t tails) const {
    const data::DataSet set = data();
    const QuestionTokens tokens_of(set);
    data::CbtReader reader(put_file(*this / "questions.txt", question_file(tails)));
    std::vector<TokenQuestion> all;
    for (data::CbtQuestion question; reader.next(question);) all.push_back(tokens_of(question));
    return all;
  }
};

}  // namespace engram::harness::cbt
