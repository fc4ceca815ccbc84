#pragma once
/// Lines that a session gets: of a stream, or of a person at a terminal.

#include <iosfwd>
#include <memory>
#include <string>

#include "apps/terminal/session_signals.hpp"

namespace engram {

class LineReader {
 public:
  enum class Got : unsigned char {
    line,
    end,         ///< there are no more lines
    interrupted  ///< Ctrl-C; what was typed of a line is gone
  };

  virtual ~LineReader() = default;
  /// The next line, without its end.
  virtual Got next(std::string& line) = 0;
};

/// Of a stream, which must outlive it. Lines end at "\n" or "\r\n".
class StreamLines final : public LineReader {
 public:
  explicit StreamLines(std::istream& stream) : stream_(&stream) {}
  Got next(std::string& line) override;

 private:
  std::istream* stream_;
};

/// What a person is asked for a line with.
inline constexpr const char* kLinePrompt = "> ";

/// Whether the program was built with libedit.
bool can_edit_lines();

/// Of the terminal at stdin and stdout, asked for with kLinePrompt; a signal that ends the session ends the lines. With
/// libedit, and on a terminal that can move its cursor (TERM is neither unset nor "dumb"), lines are edited and the
/// arrow keys bring back earlier ones, which are kept in memory alone; else they are lines as the system gives them.
/// `signals` must outlive it.
std::unique_ptr<LineReader> terminal_lines(SessionSignals& signals);

}  // namespace engram
