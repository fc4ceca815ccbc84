#include "apps/data/prepare/given_vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>

#include "apps/data/vocabulary/placeholders.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

/// A model may be measured on one text: splits that are not given are one that is.
void complete_splits(PrepareOptions& options) {
  if (!options.text.empty() || (options.articles && !options.articles->paths.empty())) return;
  const std::array<std::filesystem::path*, 3> files{&options.test, &options.valid, &options.train};
  const auto given = std::ranges::find_if(files, [](const auto* path) { return !path->empty(); });
  if (given == files.end()) return;
  for (std::filesystem::path* const path : files)
    if (path->empty()) *path = **given;
}

void set_word_rules(PrepareOptions& options, const GivenVocabulary& given) {
  const WordVocabulary& words = *given.vocabulary.words();
  if (given.text.articles.has_value() != options.articles.has_value())
    throw UsageError(
        text("prepare: the vocabulary of '", given.of, "' is of ",
             given.text.articles ? "words in articles, got a text without --articles" : "words, got --articles"));
  if (options.words.unseen == UnseenWords::unk && words.unknown_token() < 0)
    throw UsageError(text("prepare: --oov unk needs a vocabulary with ", words.marks().unknown, ", got that of '",
                          given.of, "' without"));
  options.words.lower |= given.text.lower;
  if (!options.join) options.join = given.text.join;
  if (options.articles) return;
  options.words.end_of_line = words.end_token() >= 0;
  options.words.sentences = given.text.sentences;
}

}  // namespace

PrepareOptions with_given(PrepareOptions options) {
  if (!options.given) return options;
  const GivenVocabulary& given = *options.given;
  if (are_placeholders(given.vocabulary))
    throw UsageError(text("prepare: --vocabulary-of must name a model whose symbols are known, got '", given.of,
                          "'\n  ", placeholder_advice(given.vocabulary.size())));
  WordRules of_given;
  of_given.unseen = options.words.unseen;
  of_given.lower = options.words.lower;
  if (options.words != of_given || !options.word_list.empty() || options.subwords != SubwordRules{} ||
      options.tokenizer || options.vocabulary_from != VocabularyFrom::train || options.byte_order != ByteOrder::seen)
    throw UsageError("prepare: --vocabulary-of has a vocabulary and its rules, got options that make another one");
  options.kind = given.vocabulary.kind();
  if (options.kind == TokenKind::word) set_word_rules(options, given);
  if (options.kind == TokenKind::subword) {
    options.tokenizer = given.text.tokenizer;
    if (!options.join) options.join = given.text.join;
  }
  complete_splits(options);
  return options;
}

void add_given_note(const PrepareOptions& options, std::vector<std::string>& notes) {
  if (!options.given || options.train.empty()) return;
  const bool trains = options.train == options.valid || options.train == options.test;
  if (trains)
    notes.push_back("train is the text of another split: a model may be measured on these data, but not trained");
  else if (options.valid == options.test)
    notes.push_back("valid and test are the same text: a model chosen on the one is chosen on the other");
}

void require_given_bytes(const Corpus& corpus, const GivenVocabulary& given) {
  const ByteVocabulary& vocabulary = *given.vocabulary.characters();
  std::array<std::int64_t, 256> counts{};
  std::int64_t all = 0;
  std::string first;
  const auto meet = [&](char byte, const std::string& place) {
    ++counts.at(static_cast<unsigned char>(byte));
    if (all++ == 0) first = place;
  };
  std::vector<std::string> seen;  // files: a text that several splits are is counted once
  for (const Split& split : corpus.splits) {
    const std::string& source = corpus.sources[split.source].name;
    if (corpus.sources.size() > 1 && std::ranges::count(seen, source) > 0) continue;
    seen.push_back(source);
    for (std::size_t at = 0;; ++at) {
      at += vocabulary.find_unknown(split.text.substr(at));
      if (at >= split.text.size()) break;
      if (split.text[at] == '\n' && corpus.drop_newlines) continue;
      meet(split.text[at], text("byte ", split.first_byte + static_cast<std::int64_t>(at), " of '", source, "'"));
    }
    if (split.end_appended && vocabulary.end_token() < 0) meet('\n', text("the end of '", source, "'"));
  }
  if (all == 0) return;
  constexpr std::size_t kTold = 8;
  std::vector<int> bytes;
  for (int byte = 0; byte < 256; ++byte)
    if (counts.at(static_cast<std::size_t>(byte)) > 0) bytes.push_back(byte);
  std::ranges::stable_sort(bytes, std::ranges::greater{},
                           [&](int byte) { return counts.at(static_cast<std::size_t>(byte)); });
  std::string list;
  for (std::size_t i = 0; i < std::min(kTold, bytes.size()); ++i)
    list += text(i > 0 ? ", " : "", byte_text(static_cast<char>(bytes[i])), " ",
                 counts.at(static_cast<std::size_t>(bytes[i])), " times");
  throw FileError(text("prepare: every byte must be in the vocabulary of '", given.of, "', got ", all, " that ",
                       all == 1 ? "is" : "are", " not, ", bytes.size(), " different: ", list,
                       bytes.size() > kTold ? ", ..." : "", "; the first is ", first,
                       "\n  a model of characters has none that stands for others: clean the text",
                       counts['\n'] > 0 ? "; --newlines drop leaves newlines out" : ""));
}

}  // namespace engram::data
