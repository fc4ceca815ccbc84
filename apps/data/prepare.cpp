#include "apps/data/prepare.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/hash.hpp"
#include "apps/data/read_file.hpp"
#include "apps/data/token_file.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

Corpus read_corpus(const PrepareOptions& options) {
  const auto read = [](const fs::path& path) { return Source{path.string(), read_bytes(path)}; };
  const std::array<const fs::path*, 3> files{&options.train, &options.valid, &options.test};
  const auto given = std::count_if(files.begin(), files.end(), [](const fs::path* path) { return !path->empty(); });
  if (options.text.empty() == (given == 0))
    throw UsageError(text("prepare: either --text or --train, --valid and --test must be given, got ",
                          given == 0 ? "neither" : "both"));
  if (given == 0) return split_text(read(options.text), options.rule, options.split, options.exact_bytes);
  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i]->empty())
      throw UsageError(text("prepare: --train, --valid and --test must be given together, got no --", kSplitNames[i],
                            "\n  to split one file use --text"));
  if (options.split) throw UsageError("prepare: --split works with --text, got it with --train, --valid and --test");
  return splits_of_files({read(options.train), read(options.valid), read(options.test)}, options.rule,
                         options.exact_bytes);
}

bool is_ours(const std::string& name) {
  const auto matches = [&name](std::string_view own) { return name == own || name == text(own, ".partial"); };
  return matches(kDataFile) || matches(kVocabularyFile) ||
         std::any_of(kSplitNames.begin(), kSplitNames.end(),
                     [&](std::string_view split) { return matches(token_file_name(split)); });
}

/// Makes the folder, or makes sure that nothing but an older data set is in it. A folder of a preparation that was
/// killed has no data.json, but only files with our names.
void require_own_folder(const fs::path& folder) {
  if (folder.empty()) throw UsageError("prepare: --out must name the data folder, got nothing");
  std::error_code error;
  fs::create_directories(folder, error);
  // create_directories reports no error for an existing file.
  if (!error && !fs::is_directory(folder)) error = std::make_error_code(std::errc::not_a_directory);
  fs::directory_iterator entries;
  if (!error) entries = fs::directory_iterator(folder, error);
  if (error)
    throw FileError(text("prepare: '", folder.string(), "' must be a folder that can be made or read, got '",
                         error.message(), "'"));
  std::string foreign;
  for (const fs::directory_entry& entry : entries)
    if (const std::string name = entry.path().filename().string(); !is_ours(name)) foreign = name;
  if (foreign.empty()) return;
  if (fs::exists(folder / kDataFile)) {
    read_json(folder / kDataFile, kDataFormat, kDataVersion);
    return;
  }
  throw FileError(text("prepare: '", folder.string(), "' must be a new, an empty or a data folder, got one with '",
                       foreign, "' in it", "\n  name another folder with --out"));
}

void require_known_bytes(const Corpus& corpus, const Vocabulary& vocabulary) {
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

TokenFileWriter write_tokens(const fs::path& path, const Split& split, const Vocabulary& vocabulary) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  TokenFileWriter writer(path, vocabulary.size(), vocabulary.hash());
  for (std::size_t first = 0; first < split.text.size(); first += kPiece)
    writer.append(vocabulary.encode(split.text.substr(first, kPiece)));
  if (split.end_appended) writer.append(std::array{vocabulary.end_token()});
  writer.flush();
  return writer;
}

std::string data_json(const PrepareOptions& options, const Corpus& corpus, const PrepareSummary& summary) {
  nlohmann::ordered_json sources = nlohmann::ordered_json::array();
  for (const Source& source : corpus.sources)
    sources.push_back(
        {{"name", source.name}, {"bytes", source.bytes.size()}, {"hash", hash_text(hash_of(source.bytes))}});
  nlohmann::ordered_json splits;
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const SplitSummary& split = summary.splits[i];
    splits[std::string(split.name)] = {{"source", corpus.splits[i].source},
                                       {"first_byte", corpus.splits[i].first_byte},
                                       {"bytes", split.bytes},
                                       {"end_appended", split.end_appended},
                                       {"tokens", split.tokens},
                                       {"content_hash", hash_text(split.content_hash)}};
  }
  const nlohmann::ordered_json json{
      {"format", kDataFormat},
      {"version", kDataVersion},
      {"kind", options.kind},
      {"rule", name_of(options.rule)},
      {"exact_bytes", options.exact_bytes},
      {"vocabulary_from", options.vocabulary_from == VocabularyFrom::all ? "all" : "train"},
      {"vocabulary_size", summary.vocabulary_size},
      {"vocabulary_hash", hash_text(summary.vocabulary_hash)},
      {"sources", sources},
      {"splits", splits},
      {"notes", summary.notes}};
  // A path may be any bytes; JSON is UTF-8.
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace

PrepareSummary prepare(const PrepareOptions& options) {
  if (options.kind != "char") throw UsageError(text("prepare: --kind must be char, got '", options.kind, "'"));
  const Corpus corpus = read_corpus(options);
  const Vocabulary vocabulary = Vocabulary::collect(corpus, options.vocabulary_from);
  require_known_bytes(corpus, vocabulary);
  require_own_folder(options.out);

  PrepareSummary summary;
  summary.vocabulary_size = vocabulary.size();
  summary.vocabulary_hash = vocabulary.hash();
  summary.notes = corpus.notes;

  DurableFile vocabulary_file(options.out / kVocabularyFile);
  vocabulary_file.append(vocabulary.json_text());
  vocabulary_file.flush();
  std::vector<TokenFileWriter> token_files;
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const Split& split = corpus.splits[i];
    token_files.push_back(write_tokens(options.out / token_file_name(kSplitNames[i]), split, vocabulary));
    summary.splits[i] = {kSplitNames[i],
                         corpus.sources[split.source].name,
                         std::ssize(split.text),
                         split.stripped,
                         split.end_appended,
                         token_files[i].count(),
                         token_files[i].content_hash()};
  }
  DurableFile data_file(options.out / kDataFile);
  data_file.append(data_json(options, corpus, summary));
  data_file.flush();

  vocabulary_file.commit();
  for (TokenFileWriter& file : token_files) file.commit();
  data_file.commit();
  return summary;
}

}  // namespace engram::data
