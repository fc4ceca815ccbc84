#include "apps/data/vocabulary/subword_vocabulary.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/data/files/base64.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram::data {
namespace {

constexpr int kSubwordsVersion = 1;

std::uint64_t hash_of_model(std::string_view model) {
  Fnv1a64 hash;
  hash.add(SubwordVocabulary::kFormat);
  hash.add(model);
  return hash.value();
}

[[noreturn]] void reject_subwords(const std::filesystem::path& path, std::string_view fact) {
  throw FileError(text("vocabulary: '", path.string(), "' must have the model of byte pairs with the hash that was ",
                       "stated when it was made, got ", fact, "\n  the file is damaged; prepare the data again"));
}

nlohmann::ordered_json facts_of(const SubwordVocabulary& vocabulary) {
  return {{"format", SubwordVocabulary::kFormat},
          {"version", kSubwordsVersion},
          {"size", vocabulary.size()},
          {"hash", hash_text(vocabulary.hash())},
          {"source_hash", hash_text(vocabulary.source_hash())},
          {"end_token", vocabulary.end_token()}};
}

}  // namespace

SubwordVocabulary::SubwordVocabulary(std::shared_ptr<const SubwordModel> model, std::uint64_t source_hash)
    : model_(std::move(model)), source_hash_(source_hash), hash_(hash_of_model(model_->model())) {}

SubwordVocabulary::SubwordVocabulary(BytePairs model, std::uint64_t source_hash)
    : SubwordVocabulary(std::make_shared<const BytePairs>(std::move(model)), source_hash) {}

SubwordVocabulary::SubwordVocabulary(MergeCodes model, std::uint64_t source_hash)
    : SubwordVocabulary(std::make_shared<const MergeCodes>(std::move(model)), source_hash) {}

SubwordVocabulary::SubwordVocabulary(std::string model, const std::filesystem::path& source, std::uint64_t source_hash)
    : SubwordVocabulary(model.starts_with(MergeCodes::kFormat)
                            ? SubwordVocabulary(MergeCodes::parse(model, source), source_hash)
                            : SubwordVocabulary(BytePairs(std::move(model), source), source_hash)) {}

std::vector<std::int32_t> SubwordVocabulary::encode(std::string_view text_bytes) const {
  if (const std::size_t wrong = find_invalid_utf8(text_bytes); wrong < text_bytes.size())
    throw UsageError(text("encode: the text must be UTF-8, got ", byte_text(text_bytes[wrong]), " at byte ", wrong));
  SubwordEncoder encoder(*model_);
  std::vector<std::int32_t> ids;
  while (!text_bytes.empty()) {
    const std::size_t end = text_bytes.find('\n');
    encoder.encode(text_bytes.substr(0, end), ids);
    if (end == std::string_view::npos) break;
    ids.push_back(end_token());
    text_bytes.remove_prefix(end + 1);
  }
  return ids;
}

std::string SubwordVocabulary::decode(std::span<const std::int32_t> tokens, std::int32_t before) const {
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int32_t token = tokens[i];
    if (token < 0 || token >= size())
      throw UsageError(text("decode: a token must be from 0 to ", size() - 1, ", got ", token, " at position ", i));
    if (token == end_token()) {
      out += '\n';
    } else {
      const bool begins_line = before < 0 || before == end_token();
      std::string_view bytes = (*model_)[token].bytes;
      if (!begins_line && model_->words_stand_apart() && before < size() && !(*model_)[before].joins_next) out += ' ';
      if (begins_line && model_->adds_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
      out += bytes;
    }
    before = token;
  }
  return out;
}

std::string SubwordVocabulary::folder_json_text() const { return facts_of(*this).dump() + "\n"; }

std::string SubwordVocabulary::json_text() const {
  nlohmann::ordered_json json = facts_of(*this);
  json["model"] = base64_text(model_->model());
  return json.dump() + "\n";
}

SubwordVocabulary SubwordVocabulary::from_json(const nlohmann::json& json, const std::filesystem::path& path) {
  require_format(json, path, kFormat, kSubwordsVersion);
  try {
    const std::string source_text = json.at("source_hash");
    const std::optional<std::uint64_t> source_hash = parse_hash(source_text);
    if (!source_hash) reject_subwords(path, text("the source hash '", source_text, "'"));
    const auto inside = json.find("model");
    const std::filesystem::path from = inside != json.end() ? path : path.parent_path() / kModelFile;
    if (inside == json.end() && !std::filesystem::exists(from))
      throw FileError(text("vocabulary: '", from.string(), "' must be the model of byte pairs that '", path.string(),
                           "' is about, got no such file\n  prepare the data again"));
    const std::optional<std::string> model =
        inside != json.end() ? parse_base64(inside->get_ref<const std::string&>()) : read_bytes(from, Pipes::refused);
    if (!model) reject_subwords(from, "one that is not in base64");
    if (json.at("hash") != hash_text(hash_of_model(*model)))
      reject_subwords(from, text("one of ", model->size(), " bytes with the hash ", hash_text(hash_of_model(*model)),
                                 " in the place of ", json.at("hash").dump()));
    return SubwordVocabulary(*model, from, *source_hash);
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    reject_subwords(path, text("this: ", error.what()));
  }
}

void SubwordEncoder::encode(std::string_view line, std::vector<std::int32_t>& ids) {
  if (model_.words_stand_apart()) return encode_apart(line, ids);
  if (!model_.splits_at_spaces()) return encode_anew(line, ids);
  for (std::size_t begin = 0; begin < line.size();) {
    std::size_t end = std::min(line.find(' ', begin + 1), line.size());
    if (end - begin > kLongestWord) {
      end = begin + kLongestWord;
      while (!is_utf8_start(line[end])) --end;
    }
    encode_word(line.substr(begin, end - begin), ids);
    begin = end;
  }
}

void SubwordEncoder::encode_apart(std::string_view line, std::vector<std::int32_t>& ids) {
  if (line.starts_with(' ') || line.ends_with(' ') || line.find("  ") != std::string_view::npos) ++altered_;
  for (std::size_t begin = 0; begin < line.size();) {
    const std::size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) encode_word(line.substr(begin, end - begin), ids);
    begin = end + 1;
  }
}

void SubwordEncoder::encode_word(std::string_view word, std::vector<std::int32_t>& ids) {
  if (word.size() > kLongestRemembered) return encode_anew(word, ids);
  const std::int32_t known = words_.find(word);
  if (known >= 0) {
    const auto index = static_cast<std::size_t>(known);
    const auto first = remembered_.begin();
    ids.insert(ids.end(), first + static_cast<std::ptrdiff_t>(index == 0 ? 0 : ends_[index - 1]),
               first + static_cast<std::ptrdiff_t>(ends_[index]));
    return;
  }
  const std::size_t before = ids.size();
  encode_anew(word, ids);
  if (words_.size() == kMostRemembered) {
    words_ = WordTable();
    ends_.clear();
    remembered_.clear();
  }
  words_.add(word);
  remembered_.insert(remembered_.end(), ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
  ends_.push_back(remembered_.size());
}

void SubwordEncoder::encode_anew(std::string_view text_bytes, std::vector<std::int32_t>& ids) {
  const std::size_t before = ids.size();
  model_.encode(text_bytes, ids);
  // Compared piece by piece, so that long lines need no second copy.
  std::string_view rest = text_bytes;
  bool same = true;
  for (std::size_t i = before; i < ids.size() && same; ++i) {
    const Subword& subword = model_[ids[i]];
    std::string_view bytes = subword.bytes;
    if (model_.words_stand_apart() && subword.role == Subword::Role::unknown) return;  // those are counted as such
    if (i == before && model_.adds_space() && bytes.starts_with(' ')) bytes.remove_prefix(1);
    same = rest.starts_with(bytes);
    if (same) rest.remove_prefix(bytes.size());
  }
  if (!same || !rest.empty()) ++altered_;
}

}  // namespace engram::data
