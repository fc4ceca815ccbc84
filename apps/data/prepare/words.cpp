/// Preparing words: texts are cut at line ends, a token is a word or a line end.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/data/prepare/finish.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/word_corpus.hpp"
#include "apps/data/vocabulary/collected_words.hpp"
#include "core/error.hpp"

namespace engram::data {

using LinePart = LineWordReader::Piece;

void require_word_options(const PrepareOptions& options) {
  require_no_subword_options(options);
  if (options.rule != TextRule::any || options.exact_bytes || options.vocabulary_from != VocabularyFrom::train ||
      options.drop_newlines || options.byte_order != ByteOrder::seen)
    throw UsageError(
        "prepare: --characters, --exact-bytes, --newlines, --ids and --vocabulary-from work with --kind char, got them "
        "with "
        "word\n  words have --eol, --ties, --oov, --min-count and others");
}

namespace {

/// The tokens of a split, piece by piece, words that become "<unk>" counted.
class WordEncoder {
 public:
  WordEncoder(const WordCorpus& corpus, const CollectedWords& collected, const WordRules& rules)
      : corpus_(corpus), collected_(collected), rules_(rules) {}

  /// Throws FileError naming the first word of a split that has no id; `name` is the split's.
  void check(const WordSplit& split, std::string_view name) const {
    LineWordReader reader(split.text);
    for (LinePart piece = reader.next(); piece != LinePart::text_end; piece = reader.next())
      if (piece == LinePart::word && id_of(reader.word()) < 0)
        throw FileError(text("prepare: every word of a split must occur in train, got '", reader.word(), "' of ", name,
                             " in ", place_text(corpus_, split, reader.word_at()),
                             "\n  --oov unk puts <unk> in the place of such words"));
  }

  /// How many words became "<unk>".
  std::int64_t write(const WordSplit& split, TokenFileWriter& writer, const ByteWatch& watch) const {
    constexpr std::size_t kPiece = std::size_t{1} << 16;
    const WordVocabulary& vocabulary = collected_.vocabulary;
    std::vector<std::int32_t> ids;
    std::int64_t unknown = 0;
    LineWordReader reader(split.text);
    const auto put = [&](std::int32_t id) {
      ids.push_back(id);
      if (ids.size() < kPiece) return;
      writer.append(ids);
      ids.clear();
      watch(static_cast<std::int64_t>(reader.word_at()), std::ssize(split.text));
    };
    for (LinePart piece = reader.next(); piece != LinePart::text_end; piece = reader.next()) {
      if (piece == LinePart::word) {
        const std::int32_t known = vocabulary.id_of(reader.word());
        unknown += known < 0 ? 1 : 0;
        put(known < 0 ? vocabulary.unknown_token() : known);
      } else if (rules_.end_of_line) {
        put(vocabulary.end_token());
      }
    }
    if (rules_.end_of_line && split.end_missing) put(vocabulary.end_token());
    writer.append(ids);
    return unknown;
  }

 private:
  std::int32_t id_of(std::string_view word) const {
    const std::int32_t known = collected_.vocabulary.id_of(word);
    const bool may_be_unknown = rules_.unseen == UnseenWords::unk || collected_.rare.find(word) >= 0;
    return known < 0 && may_be_unknown ? collected_.vocabulary.unknown_token() : known;
  }

  const WordCorpus& corpus_;
  const CollectedWords& collected_;
  const WordRules& rules_;
};

/// What the user should be told about the words, one sentence each.
std::vector<std::string> notes_of(const WordCorpus& corpus, const CollectedWords& collected, const WordRules& rules,
                                  const PrepareSummary& summary) {
  std::vector<std::string> notes = corpus.notes;
  if (collected.rare.size() > 0)
    notes.push_back(text(collected.rare.size(), " words that train has fewer than ", rules.min_count,
                         " times became <unk> (", collected.rare_tokens, " of its tokens)"));
  const std::int64_t elsewhere = summary.splits[1].unknown + summary.splits[2].unknown;
  if (elsewhere > 0)
    notes.push_back(text(summary.splits[1].unknown, " tokens of valid and ", summary.splits[2].unknown,
                         " of test became <unk>, because train ",
                         rules.min_count > 1 ? text("has them fewer than ", rules.min_count, " times") : "lacks them"));
  if (collected.unknown_added)
    notes.push_back("train has no <unk>: a model gets an id for it, but never learns when it comes");
  const bool comparable = rules.min_count == 1 && !collected.unknown_added;
  const std::int64_t with_end_token = collected.vocabulary.size() + (rules.end_of_line ? 0 : 1);
  for (auto* const note_of : {wikitext103_note, penn_treebank_note})
    if (std::string note = note_of(corpus.splits, comparable ? with_end_token : 0); !note.empty())
      notes.push_back(std::move(note));
  return notes;
}

}  // namespace

PrepareSummary prepare_words(const PrepareOptions& options) {
  require_word_options(options);
  const WordRules& rules = options.words;
  if (rules.sentences != SentenceMarks::none)
    throw UsageError(text("prepare: --sentences ", name_of(rules.sentences), " works with --word-list, got no list"));
  std::vector<Source> sources = read_sources(options);
  options.watch.begin("looking for lines and words");
  const std::vector<SourceFacts> facts = facts_of(sources);
  if (rules.lower)
    for (Source& source : sources) lower_ascii(source.bytes);
  const WordCorpus corpus =
      sources.size() == 1
          ? split_lines(std::move(sources[0]), options.split.value_or(kUsualPercentages), rules.end_of_line)
          : lines_of_files(three(std::move(sources)), rules.end_of_line);
  options.watch.begin("counting words");
  const CollectedWords collected =
      collect_words(std::span(corpus.splits).first(rules.count_all ? 3 : 1), rules, options.watch.at);
  const WordEncoder encoder(corpus, collected, rules);
  for (std::size_t i = 1; i < corpus.splits.size(); ++i) encoder.check(corpus.splits[i], kSplitNames[i]);

  const Vocabulary vocabulary(collected.vocabulary);
  FolderWriter writer(options.out, vocabulary);
  PrepareSummary summary;
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const WordSplit& split = corpus.splits[i];
    options.watch.begin(text("writing ", kSplitNames[i]));
    const std::int64_t unknown = encoder.write(split, writer.begin_split(), options.watch.at);
    summary.splits[i] = {.name = kSplitNames[i],
                         .source = corpus.sources[split.source].name,
                         .source_index = split.source,
                         .first_byte = split.first_byte,
                         .bytes = std::ssize(split.text),
                         .end_appended = rules.end_of_line && split.end_missing,
                         .words = split.words,
                         .end_tokens = rules.end_of_line ? split.lines : 0,
                         .unknown = unknown};
  }
  summary.notes = notes_of(corpus, collected, rules, summary);
  finish(options, facts, vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
