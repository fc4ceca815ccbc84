#include "apps/data/vocabulary/token_kind.hpp"

#include "core/error.hpp"

namespace engram::data {

TokenKind parse_token_kind(std::string_view name) {
  for (const TokenKind kind : {TokenKind::character, TokenKind::word, TokenKind::subword})
    if (name == name_of(kind)) return kind;
  throw UsageError(text("prepare: --kind must be char, word or bpe, got '", name, "'"));
}

}  // namespace engram::data
