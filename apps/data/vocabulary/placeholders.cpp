#include "apps/data/vocabulary/placeholders.hpp"

#include <utility>

#include "core/error.hpp"

namespace engram::data {
namespace {

constexpr std::uint64_t kNoSource = 0;

std::string placeholder(std::int64_t id) { return text("<", id, ">"); }

}  // namespace

Vocabulary placeholder_words(std::int64_t size) {
  WordTable words;
  for (std::int64_t id = 0; id < size; ++id) words.add(placeholder(id));
  return WordVocabulary(std::move(words), /*end_of_line=*/false, kNoSource);
}

bool are_placeholders(const Vocabulary& vocabulary) {
  const WordVocabulary* const words = vocabulary.words();
  if (words == nullptr || words->source_hash() != kNoSource || words->end_token() >= 0) return false;
  for (std::int32_t id = 0; id < words->size(); ++id)
    if (words->word(id) != placeholder(id)) return false;
  return true;
}

std::string placeholder_advice(std::int64_t size) {
  return text("the model's symbols are placeholders, <0> to <", size - 1, ">, as it was imported without --vocab",
              "\n  engram import --vocab gives it those of a data folder, a list or a pickled vocabulary");
}

std::string symbols_text(const Vocabulary& vocabulary) {
  return are_placeholders(vocabulary) ? "placeholders" : std::string(plural_of(vocabulary.kind()));
}

}  // namespace engram::data
