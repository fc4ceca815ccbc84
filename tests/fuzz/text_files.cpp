/// Texts: of data, of articles, and questions of the Children's Book Test.

#include <string>
#include <vector>

#include "apps/data/text/article_text.hpp"
#include "apps/data/text/cbt.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/text/moses_words.hpp"
#include "apps/data/text/penn_words.hpp"
#include "apps/data/text/sentences.hpp"
#include "apps/data/text/streamed_text.hpp"
#include "apps/data/text/text_lines.hpp"
#include "apps/data/text/utf8.hpp"
#include "apps/data/text/word_joiner.hpp"
#include "apps/studies/cbt/foreign_scores.hpp"
#include "core/error.hpp"
#include "tests/fuzz/reader.hpp"

namespace engram::fuzz {
namespace {

using namespace data;

/// Counts what it gets.
class Articles final : public ArticleSink {
 public:
  void begin_article(std::string, bool) override { ++count; }
  void add_text(std::int64_t bytes, std::int64_t words) override {
    if (bytes < 0 || words < 0 || count == 0) throw std::logic_error("a line must be of an article");
  }
  void add_sentence(std::vector<std::string>& words) override {
    if (words.empty() || count == 0) throw std::logic_error("a sentence must have words, and be of an article");
    for (const std::string& word : words)
      if (word.empty() || find_invalid_utf8(word) < word.size()) throw std::logic_error("a word must be text");
  }
  std::int64_t count = 0;
};

class ArticleLines final : public ArticleLineSink {
 public:
  void begin_article() override {}
  void add_line(std::string_view line, std::int64_t, std::int64_t) override {
    if (line.empty()) throw std::logic_error("a line must not be blank");
  }
};

}  // namespace

void read_texts(std::string_view bytes) {
  const std::filesystem::path path = scratch_file(bytes);
  static const MosesTokenizer plain{MosesRules{}}, all{MosesRules{.escape = true, .hyphens = true}};
  refuses([&] {
    TextLines lines(path);
    for (std::string line; lines.next(line);) {
      plain.words(line);
      all.words(line);
      split_sentences(line, [](std::string_view sentence) {
        split_penn_words(sentence, ends_sentence(sentence), [](std::string_view) {});
      });
    }
  });
  refuses([&] { read_moses_prefixes(path); });
  refuses([&] {
    const StreamedText text(path, kUsualPercentages);
    for (std::size_t split = 0; split < kSplitNames.size(); ++split) text.read_lines(split, [](std::string_view) {});
  });
  for (const TextRule rule : {TextRule::any, TextRule::text8, TextRule::enwik8})
    for (const bool drops : {false, true})
      refuses([&] { split_text({"input", std::string(bytes)}, rule, std::nullopt, false, drops); });
}

void read_article_texts(std::string_view bytes) {
  const std::filesystem::path path = scratch_file(bytes);
  for (const auto& named : names_of(ArticleFormat{})) {
    const ArticleFormat format = named.value;
    for (const bool alone : {false, true})
      refuses([&] {
        Articles articles;
        ArticleRules rules;
        rules.format = format;
        rules.pretokenized = rules.keep_numbers = rules.chapters = alone;
        read_articles(path, "input", rules, alone, articles);
      });
    refuses([&] {
      ArticleLines lines;
      read_article_lines(path, format, lines);
    });
  }
}

void read_cbt_questions(std::string_view bytes) {
  const std::filesystem::path path = scratch_file(bytes);
  for (const bool lenient : {false, true})
    refuses([&] {
      CbtReader reader(path, lenient);
      for (CbtQuestion question; reader.next(question);) {
        if (question.candidates.at(question.answer_index) != question.answer ||
            question.query.at(question.blank) != CbtQuestion::kBlank)
          throw std::logic_error("a question must have a blank, and its answer among the candidates");
        candidate_sentences(question);
      }
      reader.skipped_text();
    });
}

void read_scores(std::string_view bytes) {
  const std::filesystem::path path = scratch_file(bytes);
  refuses([&] {
    ForeignScores scores(path);
    for (int question = 0; question < 64; ++question)
      for (const double score : scores.next())
        if (score != score) throw std::logic_error("a score must be a number");
    scores.end();
  });
}

}  // namespace engram::fuzz
