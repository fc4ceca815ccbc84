#include "apps/studies/attention/read_tokens.hpp"

#include <algorithm>
#include <array>

namespace engram {
namespace {

std::string visible(const std::string& token) {
  std::string shown;
  for (const char byte : token)
    shown += byte == '\n' ? "\u23ce" : byte == '\t' ? "\u21e5" : byte == ' ' ? "\u2423" : std::string(1, byte);
  return shown;
}

}  // namespace

ReadTokens::ReadTokens(const std::vector<std::int32_t>& tokens, const data::Vocabulary& vocabulary)
    : words_(vocabulary.kind() == data::TokenKind::word) {
  for (const std::int32_t token : tokens) tokens_.push_back(visible(vocabulary.decode(std::array{token})));
}

std::string ReadTokens::around(std::int64_t position) const {
  std::string shown;
  const std::int64_t before = words_ ? 6 : 24;
  for (std::int64_t at = std::max<std::int64_t>(0, position - before); at < position; ++at)
    shown += token(at) + (words_ ? " " : "");
  return shown + "[" + token(position) + "]";
}

}  // namespace engram
