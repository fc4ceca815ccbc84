#include "apps/data/prepare.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/hash.hpp"
#include "apps/data/prepare_parts.hpp"
#include "apps/data/read_file.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

nlohmann::ordered_json splits_json(const PrepareSummary& summary) {
  nlohmann::ordered_json splits;
  for (const SplitSummary& split : summary.splits) {
    nlohmann::ordered_json one{{"source", split.source_index},
                               {"first_byte", split.first_byte},
                               {"bytes", split.bytes},
                               {"end_appended", split.end_appended},
                               {"tokens", split.tokens}};
    if (summary.kind == TokenKind::word) {
      one["end_tokens"] = split.end_tokens;
      one["unknown"] = split.unknown;
    }
    one["content_hash"] = hash_text(split.content_hash);
    splits[std::string(split.name)] = std::move(one);
  }
  return splits;
}

std::string data_json(const PrepareOptions& options, const std::vector<Source>& sources,
                      const PrepareSummary& summary) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const Source& source : sources)
    files.push_back(
        {{"name", source.name}, {"bytes", source.bytes.size()}, {"hash", hash_text(hash_of(source.bytes))}});
  nlohmann::ordered_json json{{"format", kDataFormat},
                              {"version", kDataVersion},
                              {"kind", name_of(options.kind)},
                              {"rule", name_of(options.rule)}};
  if (options.kind == TokenKind::word) {
    const WordRules& rules = options.words;
    json["eol"] = name_of_end_of_line(rules.end_of_line);
    json["ties"] = name_of(rules.ties);
    json["oov"] = name_of(rules.unseen);
    json["min_count"] = rules.min_count;
  } else {
    json["exact_bytes"] = options.exact_bytes;
    json["vocabulary_from"] = options.vocabulary_from == VocabularyFrom::all ? "all" : "train";
  }
  json["vocabulary_size"] = summary.vocabulary_size;
  json["vocabulary_hash"] = hash_text(summary.vocabulary_hash);
  json["sources"] = std::move(files);
  json["splits"] = splits_json(summary);
  json["notes"] = summary.notes;
  // A path may be any bytes; JSON is UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

/// One text, or train, valid and test.
std::vector<Source> read_sources(const PrepareOptions& options) {
  const auto read = [](const fs::path& path) { return Source{path.string(), read_bytes(path)}; };
  const std::array<const fs::path*, 3> files{&options.train, &options.valid, &options.test};
  const auto given = std::count_if(files.begin(), files.end(), [](const fs::path* path) { return !path->empty(); });
  if (options.text.empty() == (given == 0))
    throw UsageError(text("prepare: either --text or --train, --valid and --test must be given, got ",
                          given == 0 ? "neither" : "both"));
  std::vector<Source> sources;
  if (given == 0) {
    sources.push_back(read(options.text));
    return sources;
  }
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i]->empty())
      throw UsageError(text("prepare: --train, --valid and --test must be given together, got no --", kSplitNames[i],
                            "\n  to split one file use --text"));
  if (options.split) throw UsageError("prepare: --split works with --text, got it with --train, --valid and --test");
  for (const fs::path* file : files) sources.push_back(read(*file));
  return sources;
}

std::array<Source, 3> three(std::vector<Source> sources) {
  return {std::move(sources[0]), std::move(sources[1]), std::move(sources[2])};
}

void finish(const PrepareOptions& options, const std::vector<Source>& sources, const Vocabulary& vocabulary,
            FolderWriter& writer, PrepareSummary& summary) {
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
  return options.kind == TokenKind::word ? prepare_words(options) : prepare_characters(options);
}

}  // namespace engram::data
