/// Preparing subwords: byte pairs are learned from train, or a model of them is given; texts of any size are read piece
/// by piece ([product-key 6]).

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/data/files/read_file.hpp"
#include "apps/data/prepare/finish.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/text/streamed_text.hpp"
#include "apps/data/vocabulary/subword_counts.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

void require_subword_options(const PrepareOptions& options) {
  if (options.rule != TextRule::any || options.exact_bytes || options.vocabulary_from != VocabularyFrom::train ||
      options.drop_newlines || options.byte_order != ByteOrder::seen || options.words != WordRules{} ||
      !options.word_list.empty())
    throw UsageError(
        "prepare: --kind bpe has the options --vocabulary, --bpe-sample and --bpe-model, got one of another kind");
  const SubwordRules& rules = options.subwords;
  if (!rules.model.empty() && (rules.vocabulary || rules.sample))
    throw UsageError(
        "prepare: --bpe-model is learned already, got --vocabulary or --bpe-sample too\n  leave either away");
  if (rules.sample && *rules.sample < 1)
    throw UsageError(text("prepare: --bpe-sample must be at least 1, got ", *rules.sample));
}

StreamedText streamed_text(const PrepareOptions& options) {
  const std::vector<fs::path> paths = source_paths(options);
  if (paths.size() == 1) return {paths[0], options.split.value_or(kUsualPercentages), options.watch};
  return StreamedText(std::array{paths[0], paths[1], paths[2]}, options.watch);
}

/// Counts the words of lines of train, spread evenly over it, of which together about `limit` bytes are taken.
SubwordCounts count_sample(const StreamedText& texts, std::int64_t limit, std::int64_t& taken, const ByteWatch& watch) {
  SubwordCounts counts;
  const std::int64_t total = texts.splits()[0].bytes;
  const double share = std::min(1.0, static_cast<double>(limit) / static_cast<double>(total));
  std::int64_t seen = 0;
  const auto take = [&](std::string_view line) {
    if (static_cast<double>(taken) <= share * static_cast<double>(seen)) {
      counts.add_line(line);
      taken += std::ssize(line) + 1;
    }
    seen += std::ssize(line) + 1;
  };
  texts.read_lines(0, take, watch);
  return counts;
}

SubwordVocabulary vocabulary_of(const StreamedText& texts, const SubwordRules& rules, const PrepareWatch& watch,
                                std::vector<std::string>& notes) {
  if (!rules.model.empty()) {
    std::string model = read_bytes(rules.model);
    const std::uint64_t hash = hash_of(model);
    return {BytePairs(std::move(model), rules.model), hash};
  }
  std::int64_t taken = 0;
  watch.begin("counting words");
  const SubwordCounts counts = count_sample(texts, rules.sample.value_or(SubwordRules::kUsualSample), taken, watch.at);
  watch.begin("learning byte pairs");
  std::string advice;
  if (const std::int64_t bytes = texts.splits()[0].bytes; taken < bytes) {
    notes.push_back(text("byte pairs were learned from ", taken, " of the ", bytes, " bytes of train, lines spread ",
                         "evenly over it"));
    advice = text("\n  pairs were learned from ", taken, " of the ", bytes, " bytes of train; a larger --bpe-sample ",
                  "has more");
  }
  const std::int64_t size = rules.vocabulary.value_or(SubwordRules::kUsualVocabulary);
  return {BytePairs(BytePairs::learn(counts, size, advice), "the model learned"), counts.hash()};
}

/// Writes the tokens of a split; returns how many of them are unknown.
std::int64_t write_split(const StreamedText& texts, std::size_t split, const BytePairs& model, SubwordEncoder& encoder,
                         TokenFileWriter& writer, const ByteWatch& watch) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::vector<std::int32_t> ids;
  std::int64_t unknown = 0;
  const auto write = [&] {
    if (!model.has_bytes())
      unknown += std::ranges::count_if(ids, [&](auto id) { return model[id].role == Subword::Role::unknown; });
    writer.append(ids);
    ids.clear();
  };
  const auto take = [&](std::string_view line) {
    encoder.encode(line, ids);
    ids.push_back(model.end_token());
    if (ids.size() >= kPiece) write();
  };
  texts.read_lines(split, take, watch);
  write();
  return unknown;
}

std::vector<SourceFacts> facts_of(const StreamedText& texts) {
  std::vector<SourceFacts> facts;
  for (const StreamedSource& source : texts.sources())
    facts.push_back({source.path.string(), source.bytes, source.hash});
  return facts;
}

}  // namespace

PrepareSummary prepare_subwords(const PrepareOptions& options) {
  require_subword_options(options);
  const StreamedText texts = streamed_text(options);
  PrepareSummary summary;
  const Vocabulary vocabulary(vocabulary_of(texts, options.subwords, options.watch, summary.notes));
  for (const StreamedSource& source : texts.sources())
    if (source.signed_utf8)
      summary.notes.push_back(
          text("'", source.path.string(), "' begins with a byte order mark, which stays a part of the text"));
  const BytePairs& model = vocabulary.subwords()->model();
  FolderWriter writer(options.out, vocabulary);
  SubwordEncoder encoder(model);
  for (std::size_t i = 0; i < summary.splits.size(); ++i) {
    const StreamedSplit& split = texts.splits()[i];
    options.watch.begin(text("writing ", kSplitNames[i]));
    TokenFileWriter& tokens = writer.begin_split();
    const std::int64_t altered = encoder.altered();
    const std::int64_t unknown = write_split(texts, i, model, encoder, tokens, options.watch.at);
    const std::string source = texts.sources()[split.source].path.string();
    if (tokens.count() < 2)
      throw FileError(text("prepare: every split needs at least 2 tokens (an input and a target), got ", tokens.count(),
                           " for ", kSplitNames[i], " from '", source, "'"));
    summary.splits[i] = {.name = kSplitNames[i],
                         .source = source,
                         .source_index = split.source,
                         .first_byte = split.first_byte,
                         .bytes = split.bytes,
                         .end_appended = split.end_missing,
                         .words = split.words,
                         .unknown = unknown,
                         .altered = encoder.altered() - altered};
  }
  if (encoder.altered() > 0)
    summary.notes.push_back(text("the model does not keep ", encoder.altered(),
                                 model.splits_at_spaces() ? " different words" : " lines",
                                 " as they are, so that losses are not reported per byte"));
  finish(options, facts_of(texts), vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
