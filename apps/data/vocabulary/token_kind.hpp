#pragma once
/// What a token of a data set is: decides how texts are split, and how losses are reported.

#include <cstdint>
#include <string_view>

namespace engram::data {

enum class TokenKind : std::uint8_t { character, word, subword };

/// As `engram prepare --kind` and data.json write it.
constexpr std::string_view name_of(TokenKind kind) {
  return kind == TokenKind::word ? "word" : kind == TokenKind::subword ? "bpe" : "char";
}
/// The inverse of name_of. Throws UsageError on any other text, naming --kind.
TokenKind parse_token_kind(std::string_view name);
/// For messages.
constexpr std::string_view plural_of(TokenKind kind) {
  return kind == TokenKind::word ? "words" : kind == TokenKind::subword ? "subwords" : "characters";
}

}  // namespace engram::data
