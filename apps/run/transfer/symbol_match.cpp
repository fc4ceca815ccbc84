#include "apps/run/transfer/symbol_match.hpp"

#include <array>
#include <string>
#include <unordered_map>

namespace engram {
namespace {

constexpr std::string_view kLineEndSymbol = "\n", kUnknownSymbol = " ";  // no word has white space in it

/// What names a symbol in every vocabulary of its kind; empty: nothing does.
std::string symbol_key(const data::Vocabulary& vocabulary, std::int32_t id) {
  if (const data::WordVocabulary* const words = vocabulary.words()) {
    if (id == words->end_token()) return std::string(kLineEndSymbol);
    if (id == words->unknown_token()) return std::string(kUnknownSymbol);
    return std::string(words->word(id));
  }
  if (const data::SubwordVocabulary* const subwords = vocabulary.subwords()) {
    if (id == subwords->end_token()) return "end";
    const data::Subword& subword = subwords->model()[id];
    switch (subword.role) {
      case data::Subword::Role::text:
        // Where words stand apart "th" ends one and "th@@" does not: two symbols of the same bytes.
        return (subword.joins_next ? "joined text " : "text ") + subword.bytes;
      case data::Subword::Role::byte:
        return "byte " + subword.bytes;
      case data::Subword::Role::unknown:
        return "unknown";
      case data::Subword::Role::mark:
        return {};
    }
  }
  return vocabulary.decode(std::array{id});
}

}  // namespace

SymbolMatch match_symbols(const data::Vocabulary& before, const data::Vocabulary& now) {
  SymbolMatch match{.before_of = std::vector<std::int64_t>(static_cast<std::size_t>(now.size()), -1),
                    .before = before.size(),
                    .same_kind = before.kind() == now.kind()};
  if (!match.same_kind) return match;
  const bool same = before.hash() == now.hash();  // marks without a name too
  std::unordered_map<std::string, std::int64_t> ids;
  for (std::int32_t id = 0; !same && id < before.size(); ++id)
    if (std::string key = symbol_key(before, id); !key.empty()) ids.emplace(std::move(key), id);
  for (std::int32_t id = 0; id < now.size(); ++id) {
    std::int64_t& found = match.before_of[static_cast<std::size_t>(id)];
    if (same) found = id;
    const auto known = same ? ids.end() : ids.find(symbol_key(now, id));
    if (known != ids.end()) {
      found = known->second;
      ids.erase(known);  // of two symbols that are written alike one has it
    }
    match.shared += found >= 0 ? 1 : 0;
  }
  return match;
}

}  // namespace engram
