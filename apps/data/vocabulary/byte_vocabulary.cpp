#include "apps/data/vocabulary/byte_vocabulary.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"

namespace engram::data {
namespace {

constexpr int kBytesVersion = 1;

std::size_t index_of(char byte) { return static_cast<unsigned char>(byte); }

[[noreturn]] void reject_bytes(const std::filesystem::path& path, std::string_view fact) {
  throw FileError(text("vocabulary: '", path.string(), "' must list 1 to 256 different bytes and their hash, got ",
                       fact, "\n  the file is damaged; prepare the data again"));
}

}  // namespace

ByteVocabulary::ByteVocabulary(std::vector<std::uint8_t> entries, bool space_is_underscore, std::uint64_t source_hash)
    : entries_(std::move(entries)), space_is_underscore_(space_is_underscore), source_hash_(source_hash) {
  ids_.fill(-1);
  for (std::size_t id = 0; id < entries_.size(); ++id) ids_[entries_[id]] = static_cast<std::int16_t>(id);
  if (space_is_underscore_) ids_[' '] = std::exchange(ids_['_'], std::int16_t{-1});
}

ByteVocabulary ByteVocabulary::collect(const Corpus& corpus, VocabularyFrom from, ByteOrder order) {
  const bool space_is_underscore = corpus.rule == TextRule::text8;
  std::array<std::int64_t, 256> counts{};
  std::vector<std::uint8_t> entries;
  Fnv1a64 hash;
  const auto meet = [&](char byte) {
    if (byte == '\n' && corpus.drop_newlines) return;
    if (counts[index_of(byte)]++ == 0) entries.push_back(static_cast<std::uint8_t>(byte));
  };
  const std::size_t split_count = from == VocabularyFrom::all ? corpus.splits.size() : 1;
  for (std::size_t i = 0; i < split_count; ++i) {
    for (const char byte : corpus.splits[i].text) meet(byte);
    if (corpus.splits[i].end_appended) meet('\n');
    hash.add(corpus.splits[i].text);
  }
  if (order == ByteOrder::count)
    std::ranges::stable_sort(entries, [&counts](std::uint8_t a, std::uint8_t b) { return counts[a] > counts[b]; });
  if (space_is_underscore) std::ranges::replace(entries, std::uint8_t{' '}, std::uint8_t{'_'});
  return ByteVocabulary(std::move(entries), space_is_underscore, hash.value());
}

std::uint64_t ByteVocabulary::hash() const {
  Fnv1a64 hash;
  hash.add(kFormat);
  hash.add_number(space_is_underscore_ ? 1 : 0);
  hash.add_number(entries_.size());
  for (const std::uint8_t entry : entries_) hash.add_number(entry);
  return hash.value();
}

std::size_t ByteVocabulary::find_unknown(std::string_view text_bytes) const {
  const auto unknown = [this](char byte) { return ids_[index_of(byte)] < 0; };
  return static_cast<std::size_t>(std::find_if(text_bytes.begin(), text_bytes.end(), unknown) - text_bytes.begin());
}

std::vector<std::int32_t> ByteVocabulary::encode(std::string_view text_bytes) const {
  if (const std::size_t at = find_unknown(text_bytes); at < text_bytes.size())
    throw UsageError(text("encode: every byte must be one of the ", size(), " that the vocabulary has, got ",
                          byte_text(text_bytes[at]), " at byte ", at, " of the text"));
  std::vector<std::int32_t> ids(text_bytes.size());
  std::transform(text_bytes.begin(), text_bytes.end(), ids.begin(), [this](char byte) { return ids_[index_of(byte)]; });
  return ids;
}

std::string ByteVocabulary::decode(std::span<const std::int32_t> tokens) const {
  std::string out;
  out.reserve(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= size())
      throw UsageError(text("decode: a token must be from 0 to ", size() - 1, ", got ", tokens[i], " at position ", i));
    const char byte = static_cast<char>(entries_[static_cast<std::size_t>(tokens[i])]);
    out += space_is_underscore_ && byte == '_' ? ' ' : byte;
  }
  return out;
}

std::string ByteVocabulary::json_text() const {
  const nlohmann::ordered_json json{{"format", kFormat},
                                    {"version", kBytesVersion},
                                    {"size", size()},
                                    {"hash", hash_text(hash())},
                                    {"source_hash", hash_text(source_hash_)},
                                    {"end_token", end_token()},
                                    {"space_is_underscore", space_is_underscore_},
                                    {"bytes", entries_}};
  return json.dump() + "\n";
}

ByteVocabulary ByteVocabulary::from_json(const nlohmann::json& json, const std::filesystem::path& path) {
  require_format(json, path, kFormat, kBytesVersion);
  std::vector<std::uint8_t> entries;
  std::array<bool, 256> seen{};
  try {
    const std::string source_text = json.at("source_hash");
    const std::optional<std::uint64_t> source_hash = parse_hash(source_text);
    if (!source_hash) reject_bytes(path, text("the source hash '", source_text, "'"));
    for (const nlohmann::json& written : json.at("bytes").get_ref<const nlohmann::json::array_t&>()) {
      const auto entry = integer_of<std::int64_t>(written);
      if (entry < 0 || entry > 255) reject_bytes(path, text("the entry ", entry));
      if (std::exchange(seen[static_cast<std::size_t>(entry)], true)) reject_bytes(path, text(entry, " twice"));
      entries.push_back(static_cast<std::uint8_t>(entry));
    }
    if (entries.empty()) reject_bytes(path, "none");
    ByteVocabulary vocabulary(std::move(entries), json.at("space_is_underscore"), *source_hash);
    if (json.at("hash") != hash_text(vocabulary.hash()))
      reject_bytes(path,
                   text("the hash ", json.at("hash").dump(), " where the bytes have ", hash_text(vocabulary.hash())));
    return vocabulary;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    reject_bytes(path, text("this: ", error.what()));
  }
}

}  // namespace engram::data
