/// Preparing subwords: byte pairs are learned from train, or a model or codes of them are given; texts of any size are
/// read piece by piece ([product-key 6]).

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/data/files/article_starts.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/prepare/finish.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/given_vocabulary.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "apps/data/prepare/subword_texts.hpp"
#include "apps/data/text/moses_words.hpp"
#include "apps/data/vocabulary/merge_codes.hpp"
#include "apps/data/vocabulary/merged_counts.hpp"
#include "apps/data/vocabulary/subword_counts.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

void require_subword_options(const PrepareOptions& options) {
  if (options.rule != TextRule::any || options.exact_bytes || options.vocabulary_from != VocabularyFrom::train ||
      options.drop_newlines || options.byte_order != ByteOrder::seen || options.words != WordRules{} ||
      !options.word_list.empty())
    throw UsageError(
        "prepare: --kind bpe has the options --vocabulary, --bpe-sample, --bpe-model, --bpe-codes, --bpe-vocabulary, "
        "--bpe-threshold and --tokenizer, got one of another kind");
  const SubwordRules& rules = options.subwords;
  if (!rules.model.empty() && (rules.vocabulary || rules.sample))
    throw UsageError(
        "prepare: --bpe-model is learned already, got --vocabulary or --bpe-sample too\n  leave either away");
  if (!rules.codes.empty() && (rules.vocabulary || rules.sample || !rules.model.empty()))
    throw UsageError(
        "prepare: --bpe-codes are learned already, got --vocabulary, --bpe-sample or --bpe-model too\n  leave either "
        "away");
  if (rules.codes.empty() && (!rules.list.empty() || rules.threshold))
    throw UsageError("prepare: --bpe-vocabulary and --bpe-threshold go with --bpe-codes, got one of them without");
  if (rules.threshold && *rules.threshold < 1)
    throw UsageError(text("prepare: --bpe-threshold must be at least 1, got ", *rules.threshold));
  if (rules.sample && *rules.sample < 1)
    throw UsageError(text("prepare: --bpe-sample must be at least 1, got ", *rules.sample));
}

/// The lines of splits as subwords are made of them.
class ReadTexts {
 public:
  explicit ReadTexts(const PrepareOptions& options)
      : texts_(options.articles ? open_article_texts(options) : open_plain_texts(options)) {
    if (options.tokenizer) tokenizer_.emplace(*options.tokenizer);
  }

  const SubwordTexts& texts() const { return *texts_; }
  std::string_view shown(std::string_view line) {
    if (!tokenizer_) return line;
    words_ = tokenizer_->words(line);
    return words_;
  }

 private:
  std::unique_ptr<SubwordTexts> texts_;
  std::optional<MosesTokenizer> tokenizer_;
  std::string words_;
};

struct Sample {
  SubwordCounts counts;
  std::int64_t taken = 0, seen = 0;  // bytes of lines with their ends
};

/// Counts the words of lines of train, spread evenly over it, of which together about `limit` bytes are taken.
Sample count_sample(ReadTexts& texts, std::int64_t limit, const ByteWatch& watch) {
  Sample sample;
  const std::int64_t total = texts.texts().summary(0).bytes;
  const double share = std::min(1.0, static_cast<double>(limit) / static_cast<double>(total));
  const auto take = [&](std::string_view line) {
    if (static_cast<double>(sample.taken) <= share * static_cast<double>(sample.seen)) {
      sample.counts.add_line(texts.shown(line));
      sample.taken += std::ssize(line) + 1;
    }
    sample.seen += std::ssize(line) + 1;
  };
  texts.texts().read(
      0, take, [] {}, watch);
  return sample;
}

SubwordVocabulary learned_vocabulary(ReadTexts& texts, const SubwordRules& rules, const PrepareWatch& watch,
                                     std::vector<std::string>& notes) {
  watch.begin("counting words");
  const auto [counts, taken, seen] = count_sample(texts, rules.sample.value_or(SubwordRules::kUsualSample), watch.at);
  watch.begin("learning byte pairs");
  std::string advice;
  if (const std::int64_t bytes = texts.texts().summary(0).bytes; taken < seen) {
    notes.push_back(text("byte pairs were learned from ", taken, " of the ", bytes, " bytes of train, lines spread ",
                         "evenly over it"));
    advice = text("\n  pairs were learned from ", taken, " of the ", bytes, " bytes of train; a larger --bpe-sample ",
                  "has more");
  }
  const std::int64_t size = rules.vocabulary.value_or(SubwordRules::kUsualVocabulary);
  return {BytePairs(BytePairs::learn(counts, size, advice), "the model learned"), counts.hash()};
}

/// Of given codes; the subwords are those of a given list, or else all that train has.
SubwordVocabulary coded_vocabulary(ReadTexts& texts, const SubwordRules& rules, const PrepareWatch& watch) {
  MergeList merges = read_merges(rules.codes);
  const std::int64_t least = rules.threshold.value_or(1);
  std::vector<CountedSubword> list;
  if (rules.list.empty()) {
    watch.begin("counting subwords");
    const WordMerger merger(merges);
    MergedCounts counts(merger);
    texts.texts().read(
        0, [&](std::string_view line) { counts.add_line(texts.shown(line)); }, [] {}, watch.at);
    list = counts.list(least);
    if (list.empty())
      throw UsageError(text("prepare: --bpe-threshold must leave a subword of train, got ", least,
                            ", which none occurs as often as"));
  } else {
    // A threshold of none keeps those with a count of 0, which such a list may have.
    list = read_subword_list(rules.list, rules.threshold.value_or(0));
  }
  MergeCodes model(std::move(merges), list, !rules.list.empty());
  const std::uint64_t hash = hash_of(model.model());
  return {std::move(model), hash};
}

SubwordVocabulary vocabulary_of(ReadTexts& texts, const SubwordRules& rules, const PrepareWatch& watch,
                                std::vector<std::string>& notes) {
  if (!rules.codes.empty()) return coded_vocabulary(texts, rules, watch);
  if (rules.model.empty()) return learned_vocabulary(texts, rules, watch, notes);
  std::string model = read_bytes(rules.model);
  const std::uint64_t hash = hash_of(model);
  return {std::move(model), rules.model, hash};
}

/// Writes the tokens of a split and where its articles start.
void write_split(ReadTexts& texts, std::size_t split, SubwordEncoder& encoder, const SubwordModel& model,
                 FolderWriter& folder, SplitSummary& summary, const ByteWatch& watch) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  TokenFileWriter& writer = folder.begin_split();
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> starts;
  const std::int64_t altered = encoder.altered();
  const auto write = [&] {
    if (!model.has_bytes())
      summary.unknown += std::ranges::count_if(ids, [&](auto id) { return model[id].role == Subword::Role::unknown; });
    writer.append(ids);
    ids.clear();
  };
  const auto take = [&](std::string_view line) {
    encoder.encode(texts.shown(line), ids);
    ids.push_back(model.end_token());
    if (ids.size() >= kPiece) write();
  };
  texts.texts().read(
      split, take, [&] { starts.push_back(writer.count() + std::ssize(ids)); }, watch);
  write();
  summary.altered = encoder.altered() - altered;
  if (writer.count() < 2)
    throw FileError(text("prepare: every split needs at least 2 tokens (an input and a target), got ", writer.count(),
                         " for ", kSplitNames.at(split), " from '", summary.source, "'"));
  if (summary.articles == 0) return;
  folder.put_articles(starts);
  summary.articles_hash = hash_of_starts(starts);
}

void add_notes(const PrepareSummary& summary, const SubwordModel& model, std::vector<std::string>& notes) {
  const auto sum = [&](std::int64_t SplitSummary::*member) {
    return summary.splits[0].*member + summary.splits[1].*member + summary.splits[2].*member;
  };
  if (model.words_stand_apart() && sum(&SplitSummary::unknown) > 0)
    notes.push_back(text(summary.splits[0].unknown, " subwords of train, ", summary.splits[1].unknown, " of valid and ",
                         summary.splits[2].unknown, " of test are not in the vocabulary, and became one that stands ",
                         "for all of them"));
  if (const std::int64_t altered = sum(&SplitSummary::altered); altered > 0)
    notes.push_back(text("the model does not keep ", altered,
                         model.words_stand_apart()  ? " lines or different words"
                         : model.splits_at_spaces() ? " different words"
                                                    : " lines",
                         " as they are, so that losses are not reported per byte"));
}

}  // namespace

PrepareSummary prepare_subwords(const PrepareOptions& options) {
  require_subword_options(options);
  ReadTexts texts(options);
  PrepareSummary summary;
  add_given_note(options, summary.notes);
  const Vocabulary vocabulary = options.given
                                    ? options.given->vocabulary
                                    : Vocabulary(vocabulary_of(texts, options.subwords, options.watch, summary.notes));
  for (std::string& note : texts.texts().notes()) summary.notes.push_back(std::move(note));
  const SubwordModel& model = vocabulary.subwords()->model();
  FolderWriter writer(options.out, vocabulary);
  SubwordEncoder encoder(model);
  for (std::size_t i = 0; i < summary.splits.size(); ++i) {
    options.watch.begin(text("writing ", kSplitNames[i]));
    summary.splits[i] = texts.texts().summary(i);
    write_split(texts, i, encoder, model, writer, summary.splits[i], options.watch.at);
  }
  add_notes(summary, model, summary.notes);
  summary.article_format = texts.texts().article_format();
  finish(options, texts.texts().sources(), vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
