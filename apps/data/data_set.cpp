#include "apps/data/data_set.hpp"

#include <algorithm>
#include <utility>

#include "apps/data/files/article_starts.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/vocabulary/placeholders.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"

namespace engram::data {
namespace {

constexpr std::string_view kAgain = "\n  prepare the data again";
constexpr std::string_view kOtherData =
    "; use the data it was trained on, or prepare the text with its vocabulary: engram prepare --vocabulary-of RUN";

void require_files(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored))
    throw FileError(text("data: '", folder.string(), "' must be a data folder, got ",
                         std::filesystem::exists(folder, ignored) ? "a file" : "nothing of this name",
                         "\n  make one with: engram prepare"));
  std::string missing;
  const auto look_for = [&](std::string_view name) {
    if (!std::filesystem::exists(folder / name, ignored)) missing += text(missing.empty() ? "" : ", ", name);
  };
  look_for(kDataFile);
  look_for(kVocabularyFile);
  for (const std::string_view split : kSplitNames) look_for(token_file_name(split));
  if (!missing.empty())
    throw FileError(text("data: '", folder.string(), "' must be a complete data folder, got one without ", missing,
                         "\n  prepare the data again"));
}

std::size_t index_of_split(std::string_view name) {
  const auto found = std::find(kSplitNames.begin(), kSplitNames.end(), name);
  if (found == kSplitNames.end())
    throw UsageError(text("data: a split must be train, valid or test, got '", name, "'"));
  return static_cast<std::size_t>(found - kSplitNames.begin());
}

/// What data.json, `all`, says about the text of a split.
std::optional<TextAmount> amount_of(const nlohmann::json& all, const nlohmann::json& split) {
  if (!split.contains("words")) return std::nullopt;
  const auto number = [&split](const char* name) {
    return split.contains(name) ? integer_of<std::int64_t>(split.at(name)) : 0;
  };
  const bool whole = number("unknown") == 0 && number("newlines_dropped") == 0 && number("altered") == 0 &&
                     !all.value("lower", false) && !all.contains("articles") && !all.contains("tokenizer");
  return TextAmount{.words = number("words"), .bytes = whole ? number("bytes") : 0};
}

}  // namespace

std::string token_file_name(std::string_view split) { return text(split, ".tokens"); }

std::string article_file_name(std::string_view split) { return text(split, ".articles"); }

DataSet::DataSet(std::filesystem::path folder, Vocabulary vocabulary, std::array<TokenFile, 3> files, std::string rule,
                 std::int32_t doubled_mark, TextAmounts amounts)
    : folder_(std::move(folder)),
      vocabulary_(std::move(vocabulary)),
      files_(std::move(files)),
      rule_(std::move(rule)),
      doubled_mark_(doubled_mark),
      amounts_(amounts) {}

DataSet DataSet::open(const std::filesystem::path& folder) {
  require_files(folder);
  const std::filesystem::path data_path = folder / kDataFile;
  const nlohmann::json json = read_json(data_path, kDataFormat, kDataVersion);
  Vocabulary vocabulary = Vocabulary::load(folder / kVocabularyFile);
  if (json.value("kind", nlohmann::json(name_of(TokenKind::character))) != name_of(vocabulary.kind()))
    throw FileError(text("data: '", data_path.string(), "' must be of the kind of the vocabulary beside it, ",
                         name_of(vocabulary.kind()), ", got ", json.at("kind").dump(), kAgain));
  const auto file_of = [&folder](std::size_t i) { return TokenFile(folder / token_file_name(kSplitNames[i])); };
  std::array<TokenFile, 3> files{file_of(0), file_of(1), file_of(2)};

  for (std::size_t i = 0; i < files.size(); ++i)
    if (files[i].vocabulary_hash() != vocabulary.hash() || files[i].vocabulary_size() != vocabulary.size())
      throw FileError(text("data: '", (folder / token_file_name(kSplitNames[i])).string(),
                           "' must be of the vocabulary beside it, ", hash_text(vocabulary.hash()), " with ",
                           vocabulary.size(), " entries, got ", hash_text(files[i].vocabulary_hash()), " with ",
                           files[i].vocabulary_size(), kAgain));
  try {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const nlohmann::json& stated = json.at("splits").at(std::string(kSplitNames[i])).at("content_hash");
      if (stated != hash_text(files[i].content_hash()))
        throw FileError(text("data: '", (folder / token_file_name(kSplitNames[i])).string(),
                             "' must hold the tokens that data.json states, ", stated.dump(), ", got ",
                             hash_text(files[i].content_hash()), kAgain));
      const nlohmann::json& tokens = json.at("splits").at(std::string(kSplitNames[i])).at("tokens");
      if (tokens != files[i].tokens().size())
        throw FileError(text("data: '", data_path.string(), "' must state the number of tokens of ", kSplitNames[i],
                             ", ", files[i].tokens().size(), ", got ", tokens.dump(), kAgain));
    }
    if (json.contains("vocabulary_size") && json.at("vocabulary_size") != vocabulary.size())
      throw FileError(text("data: '", data_path.string(), "' must state the size of the vocabulary beside it, ",
                           vocabulary.size(), ", got ", json.at("vocabulary_size").dump(), kAgain));
    TextAmounts amounts;
    for (std::size_t i = 0; i < amounts.size(); ++i)
      amounts[i] = amount_of(json, json.at("splits").at(std::string(kSplitNames[i])));
    const bool marks_doubled = json.value("sentences", std::string()) == name_of(SentenceMarks::around);
    const std::int32_t mark = marks_doubled ? vocabulary.end_token() : -1;
    DataSet data(folder, std::move(vocabulary), std::move(files), json.at("rule"), mark, amounts);
    data.read_rules(json);
    if (json.contains("articles")) data.read_articles(json);
    return data;
  } catch (const nlohmann::json::exception& error) {
    throw FileError(text("data: '", data_path.string(),
                         "' must state the rule and the hash of each split, got this: ", error.what(), kAgain));
  }
}

void DataSet::read_rules(const nlohmann::json& json) {
  try {
    text_rules_ = text_rules_of(json);
    if (json.contains("articles")) article_rules_ = article_rules_of(json.at("articles"));
  } catch (const UsageError& error) {
    throw FileError(text("data: '", (folder_ / kDataFile).string(),
                         "' must state how its text became words, got this: ", error.what(), kAgain));
  }
}

void DataSet::read_articles(const nlohmann::json& json) {
  const WordVocabulary* const words = vocabulary_.words();
  if (kind() == TokenKind::character ||
      (words != nullptr && (words->unknown_token() < 0 || words->id_of(kSentenceEnd) < 0)))
    throw FileError(text("data: the vocabulary of articles must have the words ", kSentenceEnd, " and ", kUnknownWord,
                         ", got '", folder_.string(), "' without", kAgain));
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::filesystem::path path = folder_ / article_file_name(kSplitNames[i]);
    articles_[i] = read_article_starts(path, files_[i].tokens().size(), files_[i].content_hash());
    const nlohmann::json& stated = json.at("splits").at(std::string(kSplitNames[i])).at("articles_hash");
    if (stated != hash_text(hash_of_starts(articles_[i])))
      throw FileError(text("data: '", path.string(), "' must hold the articles that data.json states, ", stated.dump(),
                           ", got ", hash_text(hash_of_starts(articles_[i])), kAgain));
  }
}

std::span<const std::int64_t> DataSet::articles(std::string_view split) const {
  return articles_[index_of_split(split)];
}

std::int32_t DataSet::article_start_token() const {
  if (!article_rules_) return -1;
  return vocabulary_.words() != nullptr ? vocabulary_.words()->id_of(kSentenceEnd) : vocabulary_.end_token();
}

TokenView DataSet::split(std::string_view name) const { return files_[index_of_split(name)].tokens(); }

std::optional<TextAmount> DataSet::text_amount(std::string_view split) const { return amounts_[index_of_split(split)]; }

std::uint64_t DataSet::content_hash(std::string_view split) const {
  return files_[index_of_split(split)].content_hash();
}

std::uint64_t DataSet::hash() const {
  Fnv1a64 all;
  all.add_number(vocabulary_.hash());
  for (const TokenFile& file : files_) all.add_number(file.content_hash());
  if (article_rules_)
    for (const auto& starts : articles_) all.add_number(hash_of_starts(starts));
  return all.value();
}

void DataSet::require_vocabulary(std::uint64_t hash, std::string_view of) const {
  if (hash != vocabulary_.hash())
    throw FileError(text("data: '", folder_.string(), "' must have the vocabulary of ", of, ", ", hash_text(hash),
                         ", got ", hash_text(vocabulary_.hash()), " with ", vocabulary_.size(), " entries",
                         "\n  their ids mean different ", plural_of(kind()), kOtherData));
}

void DataSet::require_vocabulary(const Vocabulary& needed, std::string_view of) const {
  if (are_placeholders(needed) && needed.hash() != vocabulary_.hash())
    throw FileError(text("data: '", folder_.string(), "' must have the vocabulary of ", of, ", got ", plural_of(kind()),
                         " of its own\n  ", placeholder_advice(needed.size()),
                         needed.size() == vocabulary_.size()
                             ? text("\n  --vocab '", folder_.string(), "' has as many as the model")
                             : ""));
  if (needed.kind() != kind())
    throw FileError(text("data: '", folder_.string(), "' must have the vocabulary of ", of, ", which is of ",
                         plural_of(needed.kind()), ", got one of ", plural_of(kind()), kOtherData));
  require_vocabulary(needed.hash(), of);
}

void DataSet::require_kind(TokenKind needed, std::string_view because) const {
  if (kind() != needed)
    throw UsageError(text("data: '", folder_.string(), "' must hold ", plural_of(needed), ", got ", plural_of(kind()),
                          "\n  ", because, "; prepare the text with engram prepare --kind ", name_of(needed)));
}

TextRules read_text_rules(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kDataFile;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  try {
    return text_rules_of(read_json(path, kDataFormat, kDataVersion));
  } catch (const FileError&) {
    throw;
  } catch (const std::exception& error) {
    throw FileError(
        text("data: '", path.string(), "' must state how its text became words, got this: ", error.what(), kAgain));
  }
}

}  // namespace engram::data
