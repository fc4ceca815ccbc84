#include "apps/data/text_tokens.hpp"

#include <optional>

#include "core/error.hpp"

namespace engram::data {

std::vector<std::int32_t> text_tokens(const std::string& written, const Vocabulary& vocabulary, UnseenWords unseen,
                                      std::string_view where, std::string_view what) {
  const WordVocabulary* const words = vocabulary.words();
  if (unseen == UnseenWords::unk && (words == nullptr || words->unknown_token() < 0))
    throw UsageError(text(where, ": --oov unk needs a model that knows the word <unk>, got one of ", vocabulary.size(),
                          " ", plural_of(vocabulary.kind()), " without"));
  if (unseen == UnseenWords::unk) return words->encode(written, unseen);
  if (const std::optional<Vocabulary::Unknown> unknown = vocabulary.find_unknown(written))
    throw UsageError(
        text(where, ": ", what, " must have only ", plural_of(vocabulary.kind()), " that the model knows, got ",
             unknown->what, " at position ", unknown->at, "\n  the model was trained on a text without it",
             words != nullptr && words->unknown_token() >= 0 ? "; --oov unk puts <unk> in its place" : ""));
  return vocabulary.encode(written);
}

}  // namespace engram::data
