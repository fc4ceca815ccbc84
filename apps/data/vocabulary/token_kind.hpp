#pragma once
/// What a token of a data set is: decides how texts are split, and how losses are reported.

#include <cstdint>
#include <string_view>

#include "core/names.hpp"

namespace engram::data {

enum class TokenKind : std::uint8_t { character, word, subword };
constexpr auto names_of(TokenKind) {
  return std::to_array<Named<TokenKind>>(
      {{TokenKind::character, "char"}, {TokenKind::word, "word"}, {TokenKind::subword, "bpe"}});
}

/// For messages.
constexpr std::string_view plural_of(TokenKind kind) {
  return kind == TokenKind::word ? "words" : kind == TokenKind::subword ? "subwords" : "characters";
}

}  // namespace engram::data
