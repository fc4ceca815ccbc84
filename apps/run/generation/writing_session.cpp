#include "apps/run/generation/writing_session.hpp"

#include <charconv>
#include <type_traits>
#include <utility>

#include "apps/data/text/article_lines.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::string_view kHelp =
    "  :temperature T   below 1: likelier tokens more often; 0: always the likeliest\n"
    "  :length N        characters, words or subwords to write\n"
    "  :top-k K         only the K likeliest tokens; 0: all\n"
    "  :top-p P         only the likeliest tokens whose probabilities together reach P\n"
    "  :seed N          the same seed, after :reset, writes the same text\n"
    "  :reset           forgets everything that was read and written\n"
    "  :quit            ends the session, as Ctrl-D does\n"
    "Without a value a command says what it is. Any other line goes on with the\n"
    "text, on a line of its own, and the model writes on; an empty line lets it\n"
    "write on where it stopped. A line that begins with : is typed with ::.\n"
    "Ctrl-C stops the model, or clears the line.";

/// The whole of a value as a number. Throws UsageError.
template <class Number>
Number number_of(std::string_view name, std::string_view value, std::string_view wanted) {
  Number number{};
  const char* const end = value.data() + value.size();
  const auto [rest, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || rest != end)
    throw UsageError(text("generate: --", name, " must be ", wanted, ", got '", value, "'"));
  return number;
}

/// The first line of a message, as of a command of a session.
std::string told(std::string_view message) {
  constexpr std::string_view kCommand = "generate: ", kOption = "--";
  message = message.substr(0, message.find('\n'));
  if (message.starts_with(kCommand)) message.remove_prefix(kCommand.size());
  if (!message.starts_with(kOption)) return std::string(message);
  return ":" + std::string(message.substr(kOption.size()));
}

}  // namespace

std::int64_t write_for_lines(TextWriter& writer, LineReader& lines, const WritingOptions& options,
                             const TextWriter::Show& print) {
  std::int64_t count = 0;
  for (std::string line; lines.next(line) == LineReader::Got::line; writer.reset()) {
    char last = '\n';
    const auto show = [&](std::string_view piece) {
      print(piece);
      if (!piece.empty()) last = piece.back();
    };
    show(writer.read(line, text("line ", ++count, " of standard input")));
    writer.write(options.length, options.sampling, show);
    if (last != '\n') print("\n");
  }
  return count;
}

WritingSession::WritingSession(TextWriter& writer, LineReader& lines, const WritingOptions& options,
                               TextWriter::Show print, std::function<bool()> stop)
    : writer_(&writer), lines_(&lines), options_(options), print_(std::move(print)), stop_(std::move(stop)) {
  options_.sampling.check();
}

void WritingSession::run() {
  bool interrupted = false;  // since the last line
  for (;;) {
    std::string line;
    const LineReader::Got got = lines_->next(line);
    if (got == LineReader::Got::end || (got == LineReader::Got::interrupted && interrupted)) return;
    interrupted = got == LineReader::Got::interrupted;
    if (interrupted) {
      say("(Ctrl-C once more, Ctrl-D or :quit ends)");
      continue;
    }
    try {
      if (!line.starts_with(':'))
        turn(line);
      else if (line.starts_with("::"))
        turn(line.substr(1));
      else if (!command(data::trimmed(line)))
        return;
    } catch (const UsageError& error) {
      say(told(error.what()));
    }
  }
}

bool WritingSession::command(std::string_view line) {
  const std::size_t space = line.find_first_of(" \t");
  const std::string_view name = line.substr(1, space == std::string_view::npos ? space : space - 1);
  const std::string_view value = space == std::string_view::npos ? "" : data::trimmed(line.substr(space));
  if (name == "quit") return false;
  if (name == "help") {
    say(kHelp);
  } else if (name == "reset") {
    writer_->reset();
    say("forgotten; the next line begins a text");
  } else {
    set(name, value);
  }
  return true;
}

void WritingSession::set(std::string_view name, std::string_view value) {
  WritingOptions changed = options_;
  const auto take = [&](auto& number, std::string_view wanted) {
    if (!value.empty()) number = number_of<std::decay_t<decltype(number)>>(name, value, wanted);
    return text(name, " ", number);
  };
  std::string now;
  if (name == "temperature") {
    now = take(changed.sampling.temperature, "a number from 0 on");
  } else if (name == "length") {
    now = take(changed.length, "a whole number from 0 on");
    if (changed.length < 0) throw UsageError(text("generate: --length must be at least 0, got ", changed.length));
  } else if (name == "top-k") {
    now = take(changed.sampling.top_k, "a whole number from 0 on");
  } else if (name == "top-p") {
    now = take(changed.sampling.top_p, "a number above 0, at most 1");
  } else if (name == "seed") {
    now = take(changed.sampling.seed, "a whole number from 0 on");
  } else {
    throw UsageError(text("there is no command ':", name, "'; :help lists them"));
  }
  changed.sampling.check();
  options_ = changed;
  say(now);
}

void WritingSession::turn(const std::string& line) {
  writer_->read(line, "the line");
  bool stopped = false, at_line_start = true;
  writer_->write(
      options_.length, options_.sampling,
      [&](std::string_view piece) {
        print_(piece);
        if (!piece.empty()) at_line_start = piece.back() == '\n';
      },
      [&] { return stopped = stop_(); });
  // A terminal shows Ctrl-C where it stands.
  if (stopped || !at_line_start) print_("\n");
}

}  // namespace engram
