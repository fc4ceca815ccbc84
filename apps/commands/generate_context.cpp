#include "apps/commands/generate_context.hpp"

#include <span>
#include <utility>

#include "apps/data/files/read_file.hpp"
#include "apps/data/vocabulary/text_tokens.hpp"
#include "core/error.hpp"

namespace engram {

void ContextArguments::add_to(Command& command) {
  command_ = &command;
  command.add_option("--prompt-file", file_, "file with the beginning; printed with --show-context")
      ->value_name("FILE");
  Option* folder = command.add_option("--data", data_, "begin with a part of a split of this data folder");
  command.add_option("--split", split_, "train, valid or test")
      ->suggest({"train", "valid", "test"})
      ->needs(folder)
      ->capture_default_str();
  Option* at = command.add_option("--at", at_, "the context's first token in the split or file, counted from 0 [0]")
                   ->non_negative();
  command.add_option("--article", article_, "or the article of the split that it begins, counted from 0")
      ->needs(folder)
      ->excludes(at)
      ->non_negative();
  command.add_option("--context", length_, text("tokens that are read, at most [", kUsualContext, "; of a file all]"))
      ->positive();
  command.add_flag("--show-context", shows_context_, "print what was read, too");
  command.add_flag("--reference", shows_reference_,
                   "print how the split or file itself goes on, --length tokens of it");
}

bool ContextArguments::given() const {
  const auto has = [this](const char* option) { return command_->count(option) > 0; };
  const bool from_data = has("--data"), from_file = has("--prompt-file");
  for (const auto& [one, other] :
       {std::pair("--prompt", "--prompt-file"), {"--prompt", "--data"}, {"--prompt-file", "--data"}})
    if (has(one) && has(other))
      throw UsageError(
          text("generate: a text begins with one of --prompt, --prompt-file and --data, got ", one, " and ", other));
  if (from_data && has("--oov")) throw UsageError("generate: --oov is for --prompt and --prompt-file, got --data");
  if (from_data || from_file) return true;
  for (const char* option : {"--at", "--context", "--show-context", "--reference"})
    if (has(option))
      throw UsageError(text("generate: ", option, " needs a context, --data DATA_DIR or --prompt-file FILE, got none"));
  return false;
}

TextContext ContextArguments::context(const OpenedModel& opened, data::UnseenWords unseen, std::int64_t length) const {
  ContextPlace place{.split = split_};
  if (command_->count("--at") > 0) place.at = at_;
  if (command_->count("--article") > 0) place.article = article_;
  if (command_->count("--context") > 0) place.length = length_;
  if (shows_reference_) place.reference = length;
  if (command_->count("--data") > 0) return context_of(opened.open_data(data_), place, opened.trained.config());
  const std::string name = text("'", file_, "'");
  return context_of(data::text_tokens(data::read_bytes(file_), opened.trained.reading(unseen), "generate", name), name,
                    place);
}

void ContextArguments::write(const OpenedModel& opened, TextWriter& writer, data::UnseenWords unseen,
                             const WritingOptions& options, const TextWriter::Show& show) const {
  const TextContext found = context(opened, unseen, options.length);
  const bool has_parts = shows_context_ || shows_reference_;
  bool at_line_start = true, at_part_start = false;
  const auto part = [&](std::string_view piece) {
    if (piece.empty()) return;
    // A heading stands between two words.
    if (std::exchange(at_part_start, false) && piece.starts_with(' ')) piece.remove_prefix(1);
    show(piece);
    if (!piece.empty()) at_line_start = piece.back() == '\n';
  };
  const auto heading = [&](std::string_view what) {
    if (!has_parts) return;
    if (!at_line_start) show("\n");
    show(text("--- ", what, " ---\n"));
    at_line_start = at_part_start = true;
  };
  if (shows_context_) {
    heading(found.place);
    part(writer.text_behind({}, found.tokens));
  }
  heading("the model writes");
  writer.begin(std::span(found.tokens).subspan(found.forgotten), found.start);
  writer.write(options.length, options.sampling, part);
  if (shows_reference_) {
    heading(found.reference.empty() ? "the text goes no further" : "the text goes on");
    part(writer.text_behind(found.tokens, found.reference));
  }
  if (has_parts && !at_line_start) show("\n");
}

}  // namespace engram
