#include "apps/data/prepare/options.hpp"

#include <algorithm>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/named_rules.hpp"
#include "apps/data/prepare_parts.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/text/text_rules.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

nlohmann::ordered_json splits_json(const PrepareSummary& summary, SentenceMarks sentences) {
  nlohmann::ordered_json splits;
  for (const SplitSummary& split : summary.splits) {
    nlohmann::ordered_json one{{"source", split.source_index}, {"first_byte", split.first_byte},
                               {"bytes", split.bytes},         {"end_appended", split.end_appended},
                               {"tokens", split.tokens},       {"words", split.words}};
    if (split.source_count > 1) one["source_count"] = split.source_count;
    if (split.newlines_dropped > 0) one["newlines_dropped"] = split.newlines_dropped;
    if (summary.kind == TokenKind::word) {
      one["end_tokens"] = split.end_tokens;
      one["unknown"] = split.unknown;
      if (split.articles > 0) {
        one["articles"] = split.articles;
        one["articles_hash"] = hash_text(split.articles_hash);
      }
      if (sentences == SentenceMarks::around) one["certain_marks"] = split.certain_marks;
    }
    if (summary.kind == TokenKind::subword) {
      one["unknown"] = split.unknown;
      one["altered"] = split.altered;
    }
    one["content_hash"] = hash_text(split.content_hash);
    splits[std::string(split.name)] = std::move(one);
  }
  return splits;
}

std::string data_json(const PrepareOptions& options, const std::vector<SourceFacts>& sources,
                      const PrepareSummary& summary) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const SourceFacts& source : sources)
    files.push_back({{"name", source.name}, {"bytes", source.bytes}, {"hash", hash_text(source.hash)}});
  nlohmann::ordered_json json{{"format", kDataFormat},
                              {"version", kDataVersion},
                              {"kind", name_of(options.kind)},
                              {"rule", name_of(options.rule)},
                              {"rules", named_rules(options)}};
  if (options.articles) {
    json["min_count"] = options.words.min_count;
    json["lower"] = options.words.lower;
    json["articles"] = json_of(*options.articles);
    if (summary.article_format) json["articles"][kFoundFormat] = name_of(*summary.article_format);
    if (!options.articles->paths.empty()) json["split"] = options.split.value_or(kUsualArticlePercentages);
  } else if (options.kind == TokenKind::word) {
    const WordRules& rules = options.words;
    json["eol"] = name_of_end_of_line(rules.end_of_line);
    json["ties"] = name_of(rules.ties);
    json["oov"] = name_of(rules.unseen);
    json["min_count"] = rules.min_count;
    json["eos_id"] = name_of_end_id(rules.end_first);
    json["count_from"] = name_of_count_from(rules.count_all);
    json["lower"] = rules.lower;
    json["sentences"] = name_of(rules.sentences);
    if (!options.word_list.empty()) json["word_list"] = options.word_list.string();
  } else if (options.kind == TokenKind::subword) {
    const SubwordRules& rules = options.subwords;
    if (rules.model.empty())
      json["bpe_sample"] = rules.sample.value_or(SubwordRules::kUsualSample);
    else
      json["bpe_model"] = rules.model.string();
  } else {
    json["exact_bytes"] = options.exact_bytes;
    json["newlines"] = options.drop_newlines ? "drop" : "keep";
    json["ids"] = name_of(options.byte_order);
    json["vocabulary_from"] = options.vocabulary_from == VocabularyFrom::all ? "all" : "train";
  }
  json["vocabulary_size"] = summary.vocabulary_size;
  json["vocabulary_hash"] = hash_text(summary.vocabulary_hash);
  json["sources"] = std::move(files);
  json["splits"] = splits_json(summary, options.words.sentences);
  json["notes"] = summary.notes;
  // A path may be any bytes; JSON is UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<fs::path> source_paths(const PrepareOptions& options) {
  const std::array<const fs::path*, 3> files{&options.train, &options.valid, &options.test};
  const auto given = std::count_if(files.begin(), files.end(), [](const fs::path* path) { return !path->empty(); });
  if (options.text.empty() == (given == 0))
    throw UsageError(text("prepare: either --text or --train, --valid and --test must be given, got ",
                          given == 0 ? "neither" : "both"));
  if (given == 0) return {options.text};
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i]->empty())
      throw UsageError(text("prepare: --train, --valid and --test must be given together, got no --", kSplitNames[i],
                            "\n  to split one file use --text"));
  if (options.split) throw UsageError("prepare: --split works with --text, got it with --train, --valid and --test");
  return {options.train, options.valid, options.test};
}

std::vector<Source> read_sources(const PrepareOptions& options) {
  std::vector<Source> sources;
  for (const fs::path& path : source_paths(options)) {
    options.watch.begin(text("reading '", path.string(), "'"));
    sources.push_back({path.string(), read_bytes(path, Pipes::read, kLargestPipe, options.watch.at)});
  }
  return sources;
}

void require_no_subword_options(const PrepareOptions& options) {
  if (options.subwords != SubwordRules{})
    throw UsageError(text("prepare: --vocabulary, --bpe-sample and --bpe-model work with --kind bpe, got them with ",
                          name_of(options.kind)));
}

std::array<Source, 3> three(std::vector<Source> sources) {
  return {std::move(sources[0]), std::move(sources[1]), std::move(sources[2])};
}

std::vector<SourceFacts> facts_of(const std::vector<Source>& sources) {
  std::vector<SourceFacts> facts;
  for (const Source& source : sources) facts.push_back({source.name, std::ssize(source.bytes), hash_of(source.bytes)});
  return facts;
}

void finish(const PrepareOptions& options, const std::vector<SourceFacts>& sources, const Vocabulary& vocabulary,
            FolderWriter& writer, PrepareSummary& summary) {
  options.watch.begin("writing to the disk");
  summary.kind = options.kind;
  summary.vocabulary_size = vocabulary.size();
  summary.vocabulary_hash = vocabulary.hash();
  for (std::size_t i = 0; i < summary.splits.size(); ++i) {
    summary.splits[i].tokens = writer.splits().at(i).count();
    summary.splits[i].content_hash = writer.splits().at(i).content_hash();
  }
  writer.commit(data_json(options, sources, summary));
}

PrepareSummary prepare(const PrepareOptions& options) {
  if (options.articles) return prepare_articles(options);
  if (options.kind == TokenKind::subword) return prepare_subwords(options);
  if (options.kind == TokenKind::character) return prepare_characters(options);
  return options.word_list.empty() ? prepare_words(options) : prepare_listed_words(options);
}

}  // namespace engram::data
