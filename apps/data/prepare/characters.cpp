/// Preparing characters: texts are cut at bytes, a token is a byte.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/data/prepare/finish.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/given_vocabulary.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/vocabulary/byte_vocabulary.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

/// Where the first byte of a split is that must have an id and has none; the length of its text if there is none.
std::size_t find_unknown(const Split& split, const ByteVocabulary& vocabulary, bool drop_newlines) {
  std::size_t at = 0;
  for (;; ++at) {
    at += vocabulary.find_unknown(split.text.substr(at));
    if (at == split.text.size() || !drop_newlines || split.text[at] != '\n') return at;
  }
}

void require_known_bytes(const Corpus& corpus, const ByteVocabulary& vocabulary) {
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const Split& split = corpus.splits[i];
    const std::size_t at = find_unknown(split, vocabulary, corpus.drop_newlines);
    const bool end_unknown = split.end_appended && vocabulary.end_token() < 0;
    if (at == split.text.size() && !end_unknown) continue;
    const std::string what = at == split.text.size() ? text("the end token (0x0a) after its text")
                                                     : text(byte_text(split.text[at]), " at byte ", at);
    throw FileError(text("prepare: every byte of a split must occur in train, got ", what, " of ", kSplitNames[i],
                         " (byte ", split.first_byte + static_cast<std::int64_t>(at), " of '",
                         corpus.sources[split.source].name, "')",
                         "\n  the model could not learn it; split differently, clean the text, or pass "
                         "--vocabulary-from all to give it an id all the same"));
  }
}

void write_tokens(TokenFileWriter& writer, const Split& split, const ByteVocabulary& vocabulary, bool drop_newlines,
                  const ByteWatch& watch) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  for (std::size_t first = 0; first < split.text.size(); first += kPiece) {
    std::string piece(split.text.substr(first, kPiece));
    if (drop_newlines) std::erase(piece, '\n');
    writer.append(vocabulary.encode(piece));
    watch(static_cast<std::int64_t>(std::min(first + kPiece, split.text.size())), std::ssize(split.text));
  }
  if (split.end_appended) writer.append(std::array{vocabulary.end_token()});
}

/// What the user should be told about newlines that are no tokens or two, and about a whole enwik8 that is not the
/// published one ([transformer-xl 6.1]: 205 different bytes, newline among them).
void add_notes(const Corpus& corpus, const PrepareOptions& options, const ByteVocabulary& vocabulary,
               std::vector<std::string>& notes) {
  constexpr std::int64_t kPublishedBytes = 100'000'000, kDifferentBytes = 205;
  const auto lost = [&corpus](std::size_t i) { return corpus.splits[i].newlines; };
  if (lost(0) + lost(1) + lost(2) > 0)
    notes.push_back(text("newlines are no tokens (", lost(0), ", ", lost(1), " and ", lost(2),
                         " bytes are left out): bits per token are not bits per byte of the text"));
  for (const Source& source : corpus.sources)
    if (corpus.rule == TextRule::any && source.bytes.find("\r\n") != std::string::npos)
      notes.push_back(
          text("lines of '", source.name,
               "' end in carriage return and newline, which are a token each (tr -d '\\r' leaves the former "
               "out)"));
  const std::int64_t expected = kDifferentBytes - (corpus.drop_newlines ? 1 : 0);
  if (corpus.rule == TextRule::enwik8 && options.vocabulary_from == VocabularyFrom::all &&
      std::ssize(corpus.sources[0].bytes) == kPublishedBytes && vocabulary.size() != expected)
    notes.push_back(text("enwik8 has ", expected, " different tokens so prepared, this file has ", vocabulary.size(),
                         ": results do not compare with published ones"));
}

}  // namespace

PrepareSummary prepare_characters(const PrepareOptions& options) {
  require_no_subword_options(options);
  if (options.words != WordRules{} || !options.word_list.empty())
    throw UsageError(
        "prepare: --eos-id, --count-from, --lower, --sentences, --word-list, --eol, --ties, --oov and --min-count work "
        "with --kind word, got them with char");
  if (options.join) throw UsageError("prepare: --join works with --kind word and bpe, got it with char");
  std::vector<Source> sources = read_sources(options);
  options.watch.begin("collecting the characters");
  const bool dropped = options.drop_newlines;
  const Corpus corpus =
      sources.size() == 1 ? split_text(std::move(sources[0]), options.rule, options.split, options.exact_bytes, dropped)
                          : splits_of_files(three(std::move(sources)), options.rule, options.exact_bytes, dropped);
  const ByteVocabulary vocabulary = options.given
                                        ? *options.given->vocabulary.characters()
                                        : ByteVocabulary::collect(corpus, options.vocabulary_from, options.byte_order);
  if (options.given)
    require_given_bytes(corpus, *options.given);
  else
    require_known_bytes(corpus, vocabulary);

  FolderWriter writer(options.out, vocabulary);
  PrepareSummary summary;
  summary.notes = corpus.notes;
  add_given_note(options, summary.notes);
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const Split& split = corpus.splits[i];
    options.watch.begin(text("writing ", kSplitNames[i]));
    write_tokens(writer.begin_split(), split, vocabulary, dropped, options.watch.at);
    summary.splits[i] = {.name = kSplitNames[i],
                         .source = corpus.sources[split.source].name,
                         .source_index = split.source,
                         .first_byte = split.first_byte,
                         .bytes = std::ssize(split.text),
                         .stripped = split.stripped,
                         .newlines_dropped = split.newlines,
                         .end_appended = split.end_appended,
                         .words = count_words(split.text)};
  }
  add_notes(corpus, options, vocabulary, summary.notes);
  finish(options, facts_of(corpus.sources), vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
