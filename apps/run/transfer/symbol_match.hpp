#pragma once
/// Which symbols two vocabularies share, whatever their ids are.

#include <cstdint>
#include <vector>

#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram {

struct SymbolMatch {
  std::vector<std::int64_t> before_of;  ///< by the ids of now: the id before; -1: there was none
  std::int64_t before = 0;              ///< symbols of the vocabulary before
  std::int64_t shared = 0;              ///< by both
  bool same_kind = true;                ///< characters, words or subwords, both

  std::int64_t now() const { return static_cast<std::int64_t>(before_of.size()); }
};

/// Characters are matched by their bytes, words by how they are written, subwords by their text and role. The end of a
/// line is the end of a line, and the unknown word the unknown word, whatever each is called. Vocabularies of different
/// kinds share nothing.
SymbolMatch match_symbols(const data::Vocabulary& before, const data::Vocabulary& now);

}  // namespace engram
