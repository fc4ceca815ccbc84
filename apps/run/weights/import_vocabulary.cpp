#include "apps/run/weights/import_vocabulary.hpp"

#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/placeholders.hpp"
#include "apps/data/vocabulary/word_list.hpp"
#include "apps/run/weights/pytorch/token_list.hpp"
#include "core/error.hpp"
#include "core/files/mapped_file.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// Lines end with "<eos>" where it is one of the tokens.
data::Vocabulary listed_words(const fs::path& path) {
  data::WordRules rules;
  rules.end_of_line = false;
  data::WordVocabulary words = data::read_word_list(path, rules);
  if (words.id_of(data::WordVocabulary::kEndOfLine) < 0) return words;
  rules.end_of_line = true;
  return data::read_word_list(path, rules);
}

data::Vocabulary pickled_words(const fs::path& path) {
  const PytorchFile file(path);
  data::WordTable words;
  std::string all;
  for (const std::string_view token : read_token_list(file)) {
    const auto refuse = [&](std::string_view what) {
      throw FileError(text("import: a vocabulary must have words of its own in UTF-8, without white space, got ", what,
                           " as token ", words.size(), " of ", file.where()));
    };
    if (token.empty() || data::find_invalid_utf8(token) < token.size()) refuse(token.empty() ? "nothing" : "no UTF-8");
    data::LineWordReader reader(token);
    if (reader.next() != data::LineWordReader::Piece::word || reader.word().size() != token.size())
      refuse("white space");
    if (words.find(token) >= 0) refuse(text("'", token, "' a second time"));
    words.add(token);
    all.append(token).append("\n");
  }
  if (words.size() == 0) throw FileError(text("import: a vocabulary must have words, got none in ", file.where()));
  data::WordMarks marks;
  if (words.find(data::kListUnknown) >= 0) marks.unknown = data::kListUnknown;
  const bool end_of_line = words.find(marks.end_of_line) >= 0;
  return data::WordVocabulary(std::move(words), end_of_line, data::hash_of(all), std::move(marks));
}

data::Vocabulary read_any(const fs::path& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return data::Vocabulary::load(path / data::kVocabularyFile);
  if (fs::is_regular_file(path, ignored) && begins_as_pytorch(map_file(path, "import").bytes()))
    return pickled_words(path);
  return listed_words(path);
}

}  // namespace

data::Vocabulary read_import_vocabulary(const fs::path& path, std::int64_t size) {
  if (path.empty()) return data::placeholder_words(size);
  data::Vocabulary vocabulary = read_any(path);
  if (vocabulary.size() != size)
    throw UsageError(text("import: the vocabulary must have the ", size, " tokens of the model, got ",
                          vocabulary.size(), " in '", path.string(), "'"));
  return vocabulary;
}

}  // namespace engram
