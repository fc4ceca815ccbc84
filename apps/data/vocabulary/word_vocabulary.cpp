#include "apps/data/vocabulary/word_vocabulary.hpp"

#include <optional>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram::data {
namespace {

constexpr int kWordsVersion = 1;
using Piece = LineWordReader::Piece;

[[noreturn]] void reject_words(const std::filesystem::path& path, std::string_view fact) {
  throw FileError(text("vocabulary: '", path.string(), "' must list different words and their hash, got ", fact,
                       "\n  the file is damaged; prepare the data again"));
}

bool is_word(std::string_view word) {
  LineWordReader reader(word);
  return !word.empty() && reader.next() == Piece::word && reader.word().size() == word.size();
}

}  // namespace

WordVocabulary::WordVocabulary(WordTable words, bool end_of_line, std::uint64_t source_hash, WordMarks marks)
    : words_(std::move(words)),
      marks_(std::move(marks)),
      end_of_line_(end_of_line),
      end_token_(end_of_line ? words_.find(marks_.end_of_line) : -1),
      source_hash_(source_hash),
      hash_(compute_hash()) {
  if (size() < 1 || (end_of_line_ && end_token_ < 0))
    throw UsageError(text("vocabulary: there must be at least one word, and '", marks_.end_of_line,
                          "' where line ends are tokens, got ", size(), " words without"));
}

std::uint64_t WordVocabulary::compute_hash() const {
  Fnv1a64 hash;
  hash.add(kFormat);
  hash.add_number(end_of_line_ ? 1 : 0);
  hash.add_number(static_cast<std::uint64_t>(size()));
  for (std::int64_t id = 0; id < size(); ++id) {
    hash.add(words_[id]);
    hash.add("\n");  // no word has one inside
  }
  if (marks_ != WordMarks{}) {
    hash.add(marks_.end_of_line + "\n");
    hash.add(marks_.unknown + "\n");
  }
  return hash.value();
}

std::string_view WordVocabulary::find_unknown(std::string_view text_bytes) const {
  LineWordReader reader(text_bytes);
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next())
    if (piece == Piece::word && id_of(reader.word()) < 0) return reader.word();
  return {};
}

std::vector<std::int32_t> WordVocabulary::encode(std::string_view text_bytes, UnseenWords unseen) const {
  if (const std::size_t wrong = find_invalid_utf8(text_bytes); wrong < text_bytes.size())
    throw UsageError(text("encode: the text must be UTF-8, got ", byte_text(text_bytes[wrong]), " at byte ", wrong));
  const std::int32_t instead = unseen == UnseenWords::unk ? unknown_token() : -1;
  std::vector<std::int32_t> ids;
  LineWordReader reader(text_bytes);
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next()) {
    if (piece == Piece::line_end) {
      if (end_of_line_) ids.push_back(end_token_);
      continue;
    }
    const std::int32_t id = id_of(reader.word());
    if (id < 0 && instead < 0)
      throw UsageError(text("encode: every word must be one of the ", size(), " that the vocabulary has, got '",
                            reader.word(), "' at byte ", reader.word_at(), " of the text"));
    ids.push_back(id < 0 ? instead : id);
  }
  return ids;
}

std::string WordVocabulary::decode(std::span<const std::int32_t> tokens, std::int32_t before) const {
  std::string out;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::int32_t token = tokens[i];
    if (token < 0 || token >= size())
      throw UsageError(text("decode: a token must be from 0 to ", size() - 1, ", got ", token, " at position ", i));
    if (end_of_line_ && token == end_token_) {
      out += '\n';
    } else {
      if (before >= 0 && !(end_of_line_ && before == end_token_)) out += ' ';
      out += words_[token];
    }
    before = token;
  }
  return out;
}

std::string WordVocabulary::json_text() const {
  nlohmann::ordered_json words = nlohmann::ordered_json::array();
  for (std::int64_t id = 0; id < size(); ++id) words.push_back(std::string(words_[id]));
  nlohmann::ordered_json json{{"format", kFormat},
                              {"version", kWordsVersion},
                              {"size", size()},
                              {"hash", hash_text(hash())},
                              {"source_hash", hash_text(source_hash_)},
                              {"end_of_line", end_of_line_},
                              {"end_token", end_token()}};
  if (marks_ != WordMarks{}) {
    json["end_word"] = marks_.end_of_line;
    json["unknown_word"] = marks_.unknown;
  }
  json["words"] = std::move(words);
  return json.dump() + "\n";
}

WordVocabulary WordVocabulary::from_json(const nlohmann::json& json, const std::filesystem::path& path) {
  require_format(json, path, kFormat, kWordsVersion);
  try {
    const std::string source_text = json.at("source_hash");
    const std::optional<std::uint64_t> source_hash = parse_hash(source_text);
    if (!source_hash) reject_words(path, text("the source hash '", source_text, "'"));
    WordTable words;
    for (const nlohmann::json& entry : json.at("words")) {
      const auto& word = entry.get_ref<const std::string&>();
      if (!is_word(word)) reject_words(path, text("'", word, "', which is not one word"));
      if (words.find(word) >= 0) reject_words(path, text("'", word, "' twice"));
      words.add(word);
    }
    const bool end_of_line = json.at("end_of_line");
    if (words.size() == 0) reject_words(path, "none");
    WordMarks marks;
    marks.end_of_line = json.value("end_word", marks.end_of_line);
    marks.unknown = json.value("unknown_word", marks.unknown);
    if (end_of_line && words.find(marks.end_of_line) < 0) reject_words(path, text("no '", marks.end_of_line, "'"));
    WordVocabulary vocabulary(std::move(words), end_of_line, *source_hash, std::move(marks));
    if (json.at("hash") != hash_text(vocabulary.hash()))
      reject_words(path,
                   text("the hash ", json.at("hash").dump(), " where the words have ", hash_text(vocabulary.hash())));
    return vocabulary;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    reject_words(path, text("this: ", error.what()));
  }
}

}  // namespace engram::data
