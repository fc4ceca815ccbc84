#pragma once
/// The vocabulary of a model whose symbols nobody told: "<0>", "<1>", ... No text has such words, so whoever finds one
/// says where the symbols' names come from, rather than that a text lacks words.

#include <cstdint>
#include <string>

#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram::data {

/// `size` is at least 1.
Vocabulary placeholder_words(std::int64_t size);
/// Whether a vocabulary is one that placeholder_words() made.
bool are_placeholders(const Vocabulary& vocabulary);
/// That they are, and what gives the symbols their names, for people: two lines, without an end.
std::string placeholder_advice(std::int64_t size);
/// What a vocabulary's symbols are, for people: "characters", "words", "subwords" or "placeholders".
std::string symbols_text(const Vocabulary& vocabulary);

}  // namespace engram::data
