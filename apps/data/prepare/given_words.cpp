/// Preparing words with the ids of a model: one text, which is cut, or files and folders, which are read piece by
/// piece.

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/data/prepare/finish.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/given_vocabulary.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "apps/data/prepare/listed_encoder.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/word_corpus.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

/// Encodes one split after the other, and takes what the vocabulary lacks.
class GivenEncoder {
 public:
  GivenEncoder(const PrepareOptions& options, FolderWriter& writer, PrepareSummary& summary)
      : options_(options), writer_(writer), summary_(summary) {}

  /// `encode` is given an encoder.
  template <class Encode>
  void split(std::size_t i, const std::string& source, std::size_t source_index, const Encode& encode) {
    SplitSummary& split = summary_.splits.at(i);
    split.name = kSplitNames.at(i);
    split.source = source;
    split.source_index = source_index;
    TokenFileWriter& tokens = writer_.begin_split();
    // A text that several splits are is counted once.
    MissingWords again;
    const auto before = std::span(summary_.splits).first(i);
    const bool repeated = options_.text.empty() && std::ranges::any_of(before, [&source](const SplitSummary& other) {
                            return other.source == source;
                          });
    ListedEncoder encoder(
        {.vocabulary = *options_.given->vocabulary.words(), .name = "", .missing = repeated ? &again : &missing_},
        options_.words, split, tokens);
    encode(encoder, split);
    split.words = tokens.count() - split.end_tokens;
    if (missing_.empty() && tokens.count() < 2)
      throw FileError(text("prepare: every split needs at least 2 tokens (an input and a target), got ", tokens.count(),
                           " for ", split.name, " from '", source, "'"));
  }

  void require_all_known() const {
    if (missing_.empty()) return;
    const WordVocabulary& words = *options_.given->vocabulary.words();
    throw FileError(text(
        "prepare: every word must be in the vocabulary of '", options_.given->of, "', got ", missing_.told(), "\n  ",
        words.unknown_token() >= 0
            ? text("--oov unk puts ", words.marks().unknown, " in their place")
            : text("it has no ", words.marks().unknown, " to put in their place; write the text as the model's is")));
  }

 private:
  const PrepareOptions& options_;
  FolderWriter& writer_;
  PrepareSummary& summary_;
  MissingWords missing_;
};

std::vector<SourceFacts> encode_text(const PrepareOptions& options, GivenEncoder& encoder,
                                     std::vector<std::string>& notes) {
  std::vector<Source> sources = read_sources(options);
  const std::vector<SourceFacts> facts = facts_of(sources);
  const WordCorpus corpus =
      split_lines(std::move(sources[0]), options.split.value_or(kUsualPercentages), options.words.end_of_line);
  notes.insert(notes.end(), corpus.notes.begin(), corpus.notes.end());
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const WordSplit& split = corpus.splits[i];
    const Source& source = corpus.sources[split.source];
    options.watch.begin(text("writing ", kSplitNames.at(i)));
    const std::int64_t line = line_number(source.bytes, static_cast<std::size_t>(split.first_byte));
    encoder.split(i, source.name, split.source, [&](ListedEncoder& words, SplitSummary& summary) {
      words.add_text(split.text, source.name, line, options.watch.at);
      summary.first_byte = split.first_byte;
    });
  }
  return facts;
}

std::vector<SourceFacts> encode_files(const PrepareOptions& options, GivenEncoder& encoder) {
  std::vector<SourceFacts> sources;
  const std::vector<fs::path> given = source_paths(options);
  for (std::size_t i = 0; i < given.size(); ++i)
    encoder.split(i, given[i].string(), sources.size(), [&](ListedEncoder& words, SplitSummary& summary) {
      const std::vector<fs::path> files = shards_of(given[i]);
      summary.source_count = std::ssize(files);
      for (const fs::path& file : files) {
        options.watch.begin(text("reading '", file.string(), "'"));
        sources.push_back(words.add_file(file, options.watch.at));
      }
    });
  return sources;
}

}  // namespace

PrepareSummary prepare_given_words(const PrepareOptions& options) {
  require_word_options(options);
  const WordVocabulary& words = *options.given->vocabulary.words();
  FolderWriter writer(options.out, options.given->vocabulary);
  PrepareSummary summary;
  GivenEncoder encoder(options, writer, summary);
  add_given_note(options, summary.notes);
  const std::vector<SourceFacts> sources =
      options.text.empty() ? encode_files(options, encoder) : encode_text(options, encoder, summary.notes);
  encoder.require_all_known();
  const auto& splits = summary.splits;
  if (splits[0].unknown + splits[1].unknown + splits[2].unknown > 0)
    summary.notes.push_back(text(splits[0].unknown, " words of train, ", splits[1].unknown, " of valid and ",
                                 splits[2].unknown, " of test are not in the vocabulary of '", options.given->of,
                                 "' and became ", words.marks().unknown));
  finish(options, sources, options.given->vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
