#pragma once
/// Writing with a model: lines go in, what the model writes on comes out.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "apps/run/generation/text_writer.hpp"
#include "apps/run/generation/token_sampler.hpp"
#include "apps/terminal/line_reader.hpp"

namespace engram {

/// How much the model writes, and how it chooses.
struct WritingOptions {
  std::int64_t length = 400;  ///< tokens
  SamplingOptions sampling{};
};

/// For each line, which is the beginning of a text of its own: the beginning as the model reads it, and what it writes
/// on, with a line end if it has none. Returns how many lines there were. Throws UsageError, naming the line, for what
/// the model does not know.
std::int64_t write_for_lines(TextWriter& writer, LineReader& lines, const WritingOptions& options,
                             const TextWriter::Show& print);

/// A person and a model write a text in turns. A line goes on with the text (TextWriter::read), an empty one lets the
/// model go on; one that begins with ":" is a command, with "::" a line that begins with ":". Faults are told in one
/// line, and all is as it was.
class WritingSession {
 public:
  /// `print` gets everything that is to be seen, `stop` is asked before each token. All that is given must outlive it.
  WritingSession(TextWriter& writer, LineReader& lines, const WritingOptions& options, TextWriter::Show print,
                 std::function<bool()> stop);

  /// Until the lines end, ":quit", or Ctrl-C twice while no line comes between.
  void run();

 private:
  /// False: the session ends.
  bool command(std::string_view line);
  void set(std::string_view name, std::string_view value);
  void turn(const std::string& line);
  void say(std::string_view line) { print_(std::string(line) + "\n"); }

  TextWriter* writer_;
  LineReader* lines_;
  WritingOptions options_;
  TextWriter::Show print_;
  std::function<bool()> stop_;
};

}  // namespace engram
