#include "apps/data/vocabulary/vocabulary.hpp"

#include "apps/data/files/read_file.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/files/json.hpp"

namespace engram::data {

Vocabulary Vocabulary::load(const std::filesystem::path& path) { return parse(read_bytes(path, Pipes::refused), path); }

Vocabulary Vocabulary::parse(std::string_view json_bytes, const std::filesystem::path& path) {
  const nlohmann::json json = parse_object(json_bytes, path);
  const auto found = json.find("format");
  const auto* const format = found == json.end() ? nullptr : found->get_ptr<const std::string*>();
  if (format != nullptr && *format == WordVocabulary::kFormat) return WordVocabulary::from_json(json, path);
  if (format != nullptr && *format == SubwordVocabulary::kFormat) return SubwordVocabulary::from_json(json, path);
  return ByteVocabulary::from_json(json, path);
}

std::int64_t Vocabulary::size() const {
  return std::visit([](const auto& entries) { return entries.size(); }, entries_);
}

std::int32_t Vocabulary::end_token() const {
  return std::visit([](const auto& entries) { return entries.end_token(); }, entries_);
}

std::uint64_t Vocabulary::hash() const {
  return std::visit([](const auto& entries) { return entries.hash(); }, entries_);
}

std::uint64_t Vocabulary::source_hash() const {
  return std::visit([](const auto& entries) { return entries.source_hash(); }, entries_);
}

std::optional<Vocabulary::Unknown> Vocabulary::find_unknown(std::string_view text_bytes) const {
  if (kind() != TokenKind::character) {
    if (const std::size_t wrong = find_invalid_utf8(text_bytes); wrong < text_bytes.size())
      return Unknown{byte_text(text_bytes[wrong]), wrong};
  }
  if (subwords() != nullptr) return std::nullopt;
  if (const WordVocabulary* const all = words()) {
    const std::string_view word = all->find_unknown(text_bytes);
    if (word.data() == nullptr) return std::nullopt;
    return Unknown{"'" + std::string(word) + "'", static_cast<std::size_t>(word.data() - text_bytes.data())};
  }
  const std::size_t at = std::get<ByteVocabulary>(entries_).find_unknown(text_bytes);
  if (at == text_bytes.size()) return std::nullopt;
  return Unknown{byte_text(text_bytes[at]), at};
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text_bytes) const {
  return std::visit([&](const auto& entries) { return entries.encode(text_bytes); }, entries_);
}

std::string Vocabulary::decode(std::span<const std::int32_t> tokens, std::int32_t before) const {
  if (const WordVocabulary* const all = words()) return all->decode(tokens, before);
  if (const SubwordVocabulary* const all = subwords()) return all->decode(tokens, before);
  return std::get<ByteVocabulary>(entries_).decode(tokens);
}

std::string Vocabulary::folder_json_text() const {
  return subwords() != nullptr ? subwords()->folder_json_text() : json_text();
}

std::string Vocabulary::json_text() const {
  return std::visit([](const auto& entries) { return entries.json_text(); }, entries_);
}

}  // namespace engram::data
