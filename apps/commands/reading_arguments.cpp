#include "apps/commands/reading_arguments.hpp"

#include "apps/data/files/read_file.hpp"
#include "apps/data/vocabulary/text_tokens.hpp"
#include "core/error.hpp"

namespace engram {

void ReadingArguments::add_to(Command& command) {
  command_ = &command;
  command.add_option("--text", text_, "text to read");
  command.add_option("--file", file_, "file with the text to read");
  command.add_option("--oov", oov_, "words that the model does not know: error, or unk for <unk>, in articles UNK")
      ->suggest({"error", "unk"})
      ->capture_default_str();
  Option* folder = command.add_option("--data", data, "read a split of this data folder instead of a text");
  command.add_option("--split", split, "train, valid or test")
      ->suggest({"train", "valid", "test"})
      ->needs(folder)
      ->capture_default_str();
  command.add_option("--tokens", most, "read so many of its first tokens [all]")->needs(folder)->positive();
}

void ReadingArguments::check() const {
  // An empty text was given, too.
  const std::size_t given = command_->count("--text") + command_->count("--file");
  const std::string command = command_->name();
  if (!data.empty()) {
    if (given > 0) throw UsageError(text(command, ": --data is a text of its own, got --text or --file too"));
    if (oov_ != "error") throw UsageError(text(command, ": --oov is for --text and --file, got --data"));
  } else if (given != 1) {
    throw UsageError(text(command, ": one of --text, --file and --data must be given"));
  }
}

std::vector<std::int32_t> ReadingArguments::tokens(const OpenedModel& opened) const {
  std::vector<std::int32_t> tokens;
  if (!data.empty()) {
    const data::DataSet set = opened.open_data(data);
    const data::TokenView part = set.split(split).beginning(most);
    tokens.resize(static_cast<std::size_t>(part.size()));
    part.copy(0, part.size(), tokens.data());
    return tokens;
  }
  const std::string command = command_->name();
  const std::string written = command_->count("--text") > 0 ? text_ : data::read_bytes(file_);
  tokens = data::text_tokens(written, opened.trained.reading(parse_named<data::UnseenWords>("words: --oov", oov_)),
                             command, "the text");
  if (tokens.empty()) throw UsageError(command + ": the text must have at least one token, got none");
  return tokens;
}

}  // namespace engram
