#pragma once
/// The options of `engram generate` that name a context: a part of a data folder's split or of a file.

#include <cstdint>
#include <string>

#include "apps/command_line/command.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/data/text/word_rules.hpp"
#include "apps/run/generation/text_context.hpp"
#include "apps/run/generation/text_writer.hpp"
#include "apps/run/generation/writing_session.hpp"

namespace engram {

class ContextArguments {
 public:
  /// Adds the options to the command, which must outlive this.
  void add_to(Command& command);
  /// Whether there is a context to read. Throws UsageError for options that exclude each other or need one.
  bool given() const;
  /// Lets the model read the context and write on, and shows all that is asked for.
  void write(const OpenedModel& opened, TextWriter& writer, data::UnseenWords unseen, const WritingOptions& options,
             const TextWriter::Show& show) const;

 private:
  TextContext context(const OpenedModel& opened, data::UnseenWords unseen, std::int64_t length) const;

  const Command* command_ = nullptr;
  std::string data_, file_, split_ = ContextPlace{}.split;
  std::int64_t at_ = 0, article_ = 0, length_ = kUsualContext;
  bool shows_context_ = false, shows_reference_ = false;
};

}  // namespace engram
