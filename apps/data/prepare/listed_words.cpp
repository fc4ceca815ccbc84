/// Preparing words with the ids of a list: one pass over files of any size ([transformer-xl 6.1], lm1b).

#include <array>
#include <string>
#include <vector>

#include "apps/data/prepare/finish.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "apps/data/prepare/listed_encoder.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/vocabulary/word_list.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

void require_list_options(const PrepareOptions& options) {
  const WordRules& rules = options.words;
  if (rules.min_count != 1 || rules.end_first || rules.count_all || rules.ties != TieOrder::later)
    throw UsageError(
        "prepare: --min-count, --ties, --eos-id and --count-from are rules of counted vocabularies, got one of them "
        "with --word-list");
  if (!options.text.empty() || options.split || options.train.empty() || options.valid.empty())
    throw UsageError(text("prepare: --word-list needs --train and --valid (files or folders), got ",
                          !options.text.empty() || options.split ? "--text or --split"
                          : options.train.empty()                ? "no --train"
                                                                 : "no --valid"));
}

/// What the user should be told, one sentence each.
std::vector<std::string> notes_of(const PrepareSummary& summary, bool test_is_valid) {
  std::vector<std::string> notes;
  const auto& splits = summary.splits;
  if (test_is_valid)
    notes.push_back(text("valid and test are the same text, '", splits[1].source,
                         "', as lm1b is published: a model chosen on the one is chosen on the other"));
  if (splits[0].certain_marks > 0)
    notes.push_back(text(splits[0].certain_marks, ", ", splits[1].certain_marks, " and ", splits[2].certain_marks,
                         " tokens are sentence marks straight after another one: models are sure of them, so that "
                         "perplexities are lower than without them"));
  if (splits[0].unknown + splits[1].unknown + splits[2].unknown > 0)
    notes.push_back(text(splits[0].unknown, " words of train, ", splits[1].unknown, " of valid and ", splits[2].unknown,
                         " of test are not in the word list"));
  return notes;
}

}  // namespace

PrepareSummary prepare_listed_words(const PrepareOptions& options) {
  require_word_options(options);
  require_list_options(options);
  const bool test_is_valid = options.test.empty() || options.test == options.valid;
  const std::array<std::vector<fs::path>, 3> files{shards_of(options.train), shards_of(options.valid),
                                                   shards_of(test_is_valid ? options.valid : options.test)};
  const Vocabulary vocabulary(read_word_list(options.word_list, options.words));
  FolderWriter writer(options.out, vocabulary);
  PrepareSummary summary;
  std::vector<SourceFacts> sources;
  for (std::size_t i = 0; i < files.size(); ++i) {
    SplitSummary& split = summary.splits[i];
    const fs::path& given = i == 0 ? options.train : i == 1 || test_is_valid ? options.valid : options.test;
    split.name = kSplitNames[i];
    split.source = given.string();
    split.source_index = sources.size();
    split.source_count = std::ssize(files[i]);
    TokenFileWriter& tokens = writer.begin_split();
    ListedEncoder encoder({*vocabulary.words(), "the word list"}, options.words, split, tokens);
    for (const fs::path& file : files[i]) {
      options.watch.begin(text("reading '", file.string(), "'"));
      sources.push_back(encoder.add_file(file, options.watch.at));
    }
    split.words = tokens.count() - split.end_tokens;
    if (tokens.count() < 2)
      throw FileError(text("prepare: every split needs at least 2 tokens (an input and a target), got ", tokens.count(),
                           " for ", kSplitNames[i], " from '", split.source, "'"));
  }
  summary.notes = notes_of(summary, test_is_valid);
  finish(options, sources, vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
