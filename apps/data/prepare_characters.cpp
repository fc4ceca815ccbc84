/// Preparing characters: texts are cut at bytes, a token is a byte.

#include <algorithm>
#include <array>
#include <utility>

#include "apps/data/byte_vocabulary.hpp"
#include "apps/data/corpus.hpp"
#include "apps/data/folder_writer.hpp"
#include "apps/data/prepare_parts.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

void require_known_bytes(const Corpus& corpus, const ByteVocabulary& vocabulary) {
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const Split& split = corpus.splits[i];
    const std::size_t at = vocabulary.find_unknown(split.text);
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

void write_tokens(TokenFileWriter& writer, const Split& split, const ByteVocabulary& vocabulary) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  for (std::size_t first = 0; first < split.text.size(); first += kPiece)
    writer.append(vocabulary.encode(split.text.substr(first, kPiece)));
  if (split.end_appended) writer.append(std::array{vocabulary.end_token()});
}

}  // namespace

PrepareSummary prepare_characters(const PrepareOptions& options) {
  if (options.words != WordRules{})
    throw UsageError("prepare: --eol, --ties, --oov and --min-count work with --kind word, got them with char");
  std::vector<Source> sources = read_sources(options);
  const Corpus corpus = sources.size() == 1
                            ? split_text(std::move(sources[0]), options.rule, options.split, options.exact_bytes)
                            : splits_of_files(three(std::move(sources)), options.rule, options.exact_bytes);
  const ByteVocabulary vocabulary = ByteVocabulary::collect(corpus, options.vocabulary_from);
  require_known_bytes(corpus, vocabulary);

  FolderWriter writer(options.out, vocabulary);
  PrepareSummary summary;
  summary.notes = corpus.notes;
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const Split& split = corpus.splits[i];
    write_tokens(writer.begin_split(), split, vocabulary);
    summary.splits[i] = {.name = kSplitNames[i],
                         .source = corpus.sources[split.source].name,
                         .source_index = split.source,
                         .first_byte = split.first_byte,
                         .bytes = std::ssize(split.text),
                         .stripped = split.stripped,
                         .end_appended = split.end_appended};
  }
  finish(options, corpus.sources, vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
