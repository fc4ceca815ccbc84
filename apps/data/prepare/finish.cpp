#include "apps/data/prepare/finish.hpp"

#include <string>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/named_rules.hpp"
#include "apps/data/text/text_rules.hpp"
#include "core/files/json.hpp"

namespace engram::data {
namespace {

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
      if (sentences == SentenceMarks::around) one["certain_marks"] = split.certain_marks;
    }
    if (split.articles > 0) {
      one["articles"] = split.articles;
      one["articles_hash"] = hash_text(split.articles_hash);
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

void add_word_rules(const PrepareOptions& options, nlohmann::ordered_json& json) {
  const WordRules& rules = options.words;
  json["eol"] = name_of_end_of_line(rules.end_of_line);
  json["oov"] = name_of(rules.unseen);
  if (!options.given) {
    json["ties"] = name_of(rules.ties);
    json["min_count"] = rules.min_count;
    json["eos_id"] = name_of_end_id(rules.end_first);
    json["count_from"] = name_of_count_from(rules.count_all);
  }
  json["lower"] = rules.lower;
  json["sentences"] = name_of(rules.sentences);
  if (!options.word_list.empty()) json["word_list"] = options.word_list.string();
}

void add_subword_rules(const PrepareOptions& options, nlohmann::ordered_json& json) {
  const SubwordRules& rules = options.subwords;
  if (!rules.codes.empty()) {
    json["bpe_codes"] = rules.codes.string();
    if (!rules.list.empty()) json["bpe_vocabulary"] = rules.list.string();
    if (rules.threshold) json["bpe_threshold"] = *rules.threshold;
  } else if (options.given) {
    // Their model is the given one.
  } else if (rules.model.empty()) {
    json["bpe_sample"] = rules.sample.value_or(SubwordRules::kUsualSample);
  } else {
    json["bpe_model"] = rules.model.string();
  }
  if (options.tokenizer) json["tokenizer"] = json_of(*options.tokenizer);
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
                              {"rules", options.given ? std::string_view() : named_rules(options)}};
  if (options.given) json["vocabulary_of"] = options.given->of;
  if (options.articles && options.kind == TokenKind::word) {
    json["min_count"] = options.words.min_count;
    json["lower"] = options.words.lower;
  } else if (options.kind == TokenKind::word) {
    add_word_rules(options, json);
  } else if (options.kind == TokenKind::subword) {
    add_subword_rules(options, json);
  } else {
    json["exact_bytes"] = options.exact_bytes;
    json["newlines"] = options.drop_newlines ? "drop" : "keep";
    if (!options.given) {
      json["ids"] = name_of(options.byte_order);
      json["vocabulary_from"] = name_of(options.vocabulary_from);
    }
  }
  if (options.join) json["join"] = name_of(*options.join);
  if (options.articles) {
    json["articles"] = json_of(*options.articles);
    if (summary.article_format) json["articles"][kFoundFormat] = name_of(*summary.article_format);
    if (!options.articles->paths.empty() && !options.articles->held_out)
      json["split"] = options.split.value_or(kUsualArticlePercentages);
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

}  // namespace engram::data
