#include "apps/data/text/article_sentences.hpp"

#include <utility>

#include "apps/data/text/line_words.hpp"
#include "apps/data/text/penn_words.hpp"
#include "apps/data/text/sentences.hpp"

namespace engram::data {

ArticleSentences::ArticleSentences(const ArticleRules& rules, ArticleFormat format, Visit visit)
    : format_(format),
      pretokenized_(rules.pretokenized || format == ArticleFormat::cbt),
      sentence_lines_(rules.sentence_lines || format == ArticleFormat::cbt),
      visit_(std::move(visit)) {}

void ArticleSentences::add_line(std::string_view line, std::int64_t number, bool has_end) {
  if (sentence_lines_) return add_sentence(line, number, has_end || ends_sentence(line), has_end);
  if (paragraph_.empty())
    paragraph_line_ = number;
  else
    paragraph_ += ' ';
  paragraph_ += line;
  // The lines of a plain text may be broken anywhere; those of the others are paragraphs.
  if (format_ != ArticleFormat::file && has_end) end_paragraph();
}

void ArticleSentences::end_paragraph() { end_paragraph(/*may_go_on=*/false); }

void ArticleSentences::stop() { end_paragraph(/*may_go_on=*/true); }

void ArticleSentences::end_paragraph(bool may_go_on) {
  std::string_view last;  // the one whose end may be that of the paragraph
  split_sentences(paragraph_, [&](std::string_view sentence) {
    if (!last.empty()) add_sentence(last, paragraph_line_, true, true);
    last = sentence;
  });
  const bool ended = !may_go_on || ends_sentence(last);
  if (!last.empty()) add_sentence(last, paragraph_line_, ended, ended);
  paragraph_.clear();
}

void ArticleSentences::add_sentence(std::string_view text, std::int64_t line, bool looks_ended, bool ended) {
  sentence_.words.clear();
  sentence_.line = line;
  sentence_.ended = ended;
  if (pretokenized_) {
    using Piece = LineWordReader::Piece;
    LineWordReader reader(text);
    for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next())
      if (piece == Piece::word) sentence_.words.emplace_back(reader.word());
  } else {
    split_penn_words(text, looks_ended, [this](std::string_view word) { sentence_.words.emplace_back(word); });
  }
  visit_(sentence_);
}

}  // namespace engram::data
