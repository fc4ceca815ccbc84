#include "apps/data/vocabulary/text_tokens.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "apps/data/text/article_lines.hpp"
#include "apps/data/text/article_sentences.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/moses_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/placeholders.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

/// Tells how a text is at fault.
struct Refusal {
  std::string_view where, what;
  const Vocabulary& vocabulary;
  std::string_view unseen_option;

  [[noreturn]] void unknown(TokenKind kind, std::string_view lacked) const {
    const WordVocabulary* const words = vocabulary.words();
    throw UsageError(text(where, ": ", what, " must have only ", plural_of(kind), " that the model knows, got ", lacked,
                          "\n  ",
                          are_placeholders(vocabulary) ? placeholder_advice(vocabulary.size())
                                                       : "the model was trained on a text without it",
                          words != nullptr && words->unknown_token() >= 0 && !unseen_option.empty()
                              ? text("; ", unseen_option, " puts ", words->marks().unknown, " in its place")
                              : ""));
  }
};

/// Articles: sentences and words as the files of the data were read.
class ArticleTokens {
 public:
  ArticleTokens(const WordVocabulary& words, const TextReading& reading, const Refusal& refusal)
      : words_(words), rules_(*reading.rules.articles), reading_(reading), refusal_(refusal) {}

  std::vector<std::int32_t> of(std::string_view written) {
    ArticleFormat format = rules_.format;
    std::int64_t number = 0;
    std::optional<ArticleSentences> sentences;
    while (!written.empty()) {
      const std::size_t end = written.find('\n');
      const bool has_end = end != std::string_view::npos;
      const std::string_view line = trimmed(written.substr(0, end));
      written.remove_prefix(has_end ? end + 1 : written.size());
      ++number;
      if (line.empty()) {
        if (sentences && has_end) sentences->end_paragraph();
        continue;
      }
      if (!sentences) {
        if (format == ArticleFormat::automatic) format = format_of_first_line(line);
        sentences.emplace(rules_, format, [this](ArticleSentence& sentence) { add(sentence); });
        normaliser_.emplace(reading_.rules.lower, rules_.keep_numbers, sentences->pretokenized());
      }
      if (is_mark_of_articles(format, line))
        sentences->end_paragraph();
      else
        sentences->add_line(line, number, has_end);
    }
    if (sentences) sentences->stop();
    return ids_;
  }

 private:
  void add(ArticleSentence& sentence) {
    if (std::ranges::find(sentence.words, kSentenceEnd) != sentence.words.end())
      throw UsageError(text(refusal_.where, ": ", refusal_.what, " must not have the word ", kSentenceEnd,
                            ", the mark that follows every sentence, got it in line ", sentence.line,
                            "\n  where a sentence ends the mark is put by itself"));
    normaliser_->normalise(sentence.words);
    for (const std::string& word : sentence.words) {
      const std::int32_t id = words_.id_of(word);
      if (id < 0 && reading_.unseen == UnseenWords::error) refusal_.unknown(TokenKind::word, text("'", word, "'"));
      ids_.push_back(id < 0 ? words_.unknown_token() : id);
    }
    if (sentence.ended && rules_.sentence_end) ids_.push_back(words_.end_token());
  }

  const WordVocabulary& words_;
  const ArticleRules& rules_;
  const TextReading& reading_;
  const Refusal& refusal_;
  std::optional<ArticleWords> normaliser_;
  std::vector<std::int32_t> ids_;
};

/// The lines of a text as the tokenizer of the data makes words of them.
std::string tokenized(std::string_view written, const MosesRules& rules) {
  const MosesTokenizer tokenizer(rules);
  std::string out;
  while (!written.empty()) {
    const std::size_t end = written.find('\n');
    out += tokenizer.words(written.substr(0, end));
    if (end == std::string_view::npos) break;
    out += '\n';
    written.remove_prefix(end + 1);
  }
  return out;
}

/// Puts the marks before sentences; line ends are the ones behind them already.
std::vector<std::int32_t> with_marks(std::vector<std::int32_t> ids, SentenceMarks marks, std::int32_t mark) {
  if (marks == SentenceMarks::none || ids.empty()) return ids;
  std::vector<std::int32_t> all{mark};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    all.push_back(ids[i]);
    if (marks == SentenceMarks::around && ids[i] == mark && i + 1 < ids.size()) all.push_back(mark);
  }
  return all;
}

}  // namespace

std::vector<std::int32_t> text_tokens(const std::string& written, const TextReading& reading, std::string_view where,
                                      std::string_view what) {
  const Vocabulary& vocabulary = reading.vocabulary;
  const WordVocabulary* const words = vocabulary.words();
  if (reading.unseen == UnseenWords::unk && (words == nullptr || words->unknown_token() < 0))
    throw UsageError(text(where, ": --oov unk needs a model that knows the word ",
                          words == nullptr ? WordVocabulary::kUnknown : std::string_view(words->marks().unknown),
                          ", got one of ", vocabulary.size(), " ", plural_of(vocabulary.kind()), " without"));
  const Refusal refusal{where, what, reading.vocabulary, reading.unseen_option};
  std::string as_read = written;
  if (words != nullptr && as_read.starts_with(kByteOrderMark)) as_read.erase(0, kByteOrderMark.size());
  if (words != nullptr && reading.rules.lower && !reading.rules.articles) lower_ascii(as_read);
  if (words != nullptr && reading.rules.articles) {
    // Files may have such bytes, which become U+FFFD; whoever types them has made a mistake.
    if (const std::size_t wrong = find_invalid_utf8(as_read); wrong < as_read.size())
      refusal.unknown(TokenKind::word, text(byte_text(as_read[wrong]), " at position ", wrong));
    return ArticleTokens(*words, reading, refusal).of(as_read);
  }
  if (reading.unseen == UnseenWords::unk)
    return with_marks(words->encode(as_read, reading.unseen), reading.rules.sentences, words->end_token());
  if (const std::optional<Vocabulary::Unknown> unknown = vocabulary.find_unknown(as_read))
    refusal.unknown(vocabulary.kind(), text(unknown->what, " at position ", unknown->at));
  if (vocabulary.subwords() != nullptr && reading.rules.tokenizer)
    as_read = tokenized(as_read, *reading.rules.tokenizer);
  return with_marks(vocabulary.encode(as_read), reading.rules.sentences, vocabulary.end_token());
}

std::int32_t text_start_token(const TextReading& reading) {
  const std::int32_t end = reading.vocabulary.end_token();
  const WordVocabulary* const words = reading.vocabulary.words();
  return end < 0 && words != nullptr && reading.rules.articles ? words->id_of(kSentenceEnd) : end;
}

std::string shown_text(const std::vector<std::int32_t>& tokens, const TextReading& reading) {
  std::span<const std::int32_t> shown = tokens;
  if (reading.rules.sentences == SentenceMarks::none || shown.empty()) return reading.vocabulary.decode(shown);
  return reading.vocabulary.decode(shown.subspan(1), shown[0]);
}

}  // namespace engram::data
