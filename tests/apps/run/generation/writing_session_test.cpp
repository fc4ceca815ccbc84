/// Writing with a model in turns: by streams, and by the program at a pseudo-terminal.

#include "apps/run/generation/writing_session.hpp"
#include "apps/run/config/run_config_file.hpp"

#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <sstream>

#include "apps/run/training/run_checkpoint.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::writing_session_test {
namespace {

/// A model of a few hundred parameters, drawn from a seed, as training saves one. What it looks back at and its
/// choices weigh much, so that what it writes depends on what it has read.
struct DrawnModel : RunFolder {
  explicit DrawnModel(data::TokenKind kind = data::TokenKind::character) : RunFolder(1500, 1, kind) {
    const data::DataSet set = data::DataSet::open(data());
    RunConfig config = load_run_config(
        put_file(*this / "config.toml", small_config()),
        {"model.layers=1", "model.width=4", "model.heads=1", "model.slots=1", "training.batch=1", "training.split=1"});
    TrainingSession session(resolved_config(config, set), set, runtime, DType::f32);
    for (const char* name : {"layers.0.attention.value", "output.weight"}) {
      const Tensor weight = session.store.parameters().find(name)->second->value();
      for (std::int64_t i = 0; i < weight.count(); ++i) weight.data<float>()[i] *= 20;
    }
    save_model(path(), session);
    trained.emplace(path(), CheckpointKind::newest, runtime);
    writer.emplace(*trained, data::UnseenWords::error);
  }
  std::filesystem::path path() const { return *this / "run" / "model.safetensors"; }
  /// What one text is, its beginning apart.
  std::string written(const std::string& beginning, std::int64_t length, const SamplingOptions& sampling = {}) {
    std::string all;
    writer->reset();
    writer->read(beginning, "the test");
    writer->write(length, sampling, [&all](std::string_view piece) { all += piece; });
    writer->reset();
    return all;
  }

  Runtime runtime{{}, 1, 1};
  std::optional<TrainedModel> trained;
  std::optional<TextWriter> writer;
};

/// Lines as a person would type them; "^C" is Ctrl-C.
struct TypedLines final : LineReader {
  explicit TypedLines(std::vector<std::string> typed) : lines(std::move(typed)) {}
  Got next(std::string& line) override {
    if (at == lines.size()) return Got::end;
    line = lines[at++];
    return line == "^C" ? Got::interrupted : Got::line;
  }
  std::vector<std::string> lines;
  std::size_t at = 0;
};

/// Everything that a session shows.
std::string session_of(DrawnModel& model, const std::vector<std::string>& typed, std::int64_t length,
                       const std::function<bool()>& stop = never()) {
  std::string all;
  model.writer->reset();
  TypedLines lines(typed);
  WritingSession(
      *model.writer, lines, {.length = length}, [&all](std::string_view piece) { all += piece; }, stop)
      .run();
  return all;
}

std::string with_end(const std::string& piece) { return piece.ends_with('\n') ? piece : piece + "\n"; }

}  // namespace

TEST_CASE("session: what was typed and written is what the model goes on from") {
  DrawnModel model;
  constexpr std::int64_t kLength = 7;
  const SamplingOptions likeliest{.temperature = 0};
  const std::string first = model.written("an a", kLength, likeliest);
  // A line that is typed later begins a line of the text.
  const std::string second = model.written(with_end("an a" + first) + "go", kLength, likeliest);
  REQUIRE(second != model.written("go", kLength, likeliest));
  const std::vector<std::string> typed{":temperature 0", "an a", "go"};
  CHECK(session_of(model, typed, kLength) == "temperature 0\n" + with_end(first) + with_end(second));
  // Forgotten, the second line begins a text.
  CHECK(session_of(model, {":temperature 0", "an a", ":reset", "go"}, kLength) ==
        "temperature 0\n" + with_end(first) + "forgotten; the next line begins a text\n" +
            with_end(model.written("go", kLength, likeliest)));
  // An empty line goes on where the model stopped, with the choices that it would have made.
  const std::string whole = model.written("an a", 2 * kLength), half = model.written("an a", kLength);
  REQUIRE(whole.starts_with(half));
  CHECK(session_of(model, {"an a", ""}, kLength) == with_end(half) + with_end(whole.substr(half.size())));
  CHECK(session_of(model, {""}, kLength) == with_end(model.written("", kLength)));
}

TEST_CASE("session: commands, and faults in one line each") {
  DrawnModel model;
  const auto said = [&](const std::string& line) { return session_of(model, {line, ":quit", ":length"}, 1); };
  CHECK(said(":length 3") == "length 3\n");
  CHECK(said(":seed 18446744073709551615") == "seed 18446744073709551615\n");
  CHECK(said(":top-k 2") == "top-k 2\n");
  CHECK(said(":top-p\t0.5 ") == "top-p 0.5\n");
  CHECK(said(":temperature -1") == ":temperature must be at least 0, got -1\n");
  CHECK(said(":temperature hot") == ":temperature must be a number from 0 on, got 'hot'\n");
  CHECK(said(":length 2.5") == ":length must be a whole number from 0 on, got '2.5'\n");
  CHECK(said(":length -2") == ":length must be at least 0, got -2\n");
  CHECK(said(":top-k -1").starts_with(":top-k must be at least 0"));
  CHECK(said(":top-p 0") == ":top-p must be in (0, 1], got 0\n");
  CHECK(said(":lenght 3") == "there is no command ':lenght'; :help lists them\n");
  for (const char* name : {":temperature", ":length", ":top-k", ":top-p", ":seed", ":reset", ":quit", "Ctrl-C"})
    CHECK_THAT(said(":help"), ContainsSubstring(name));
  // A fault changes nothing.
  CHECK(session_of(model, {":length 2", ":length x", ":top-p 2", "", ":length"}, 1) ==
        "length 2\n:length must be a whole number from 0 on, got 'x'\n:top-p must be in (0, 1], got 2\n" +
            with_end(model.written("", 2)) + "length 2\n");
  CHECK(session_of(model, {"an Z", "an a"}, 4) ==
        "the line must have only characters that the model knows, got 'Z' (0x5a) at position 3\n" +
            with_end(model.written("an a", 4)));
  CHECK_THAT(session_of(model, {"::reset"}, 4), ContainsSubstring("got ':' (0x3a) at position 0"));
}

TEST_CASE("session: Ctrl-C stops what is written, and ends when it comes twice") {
  DrawnModel model;
  const std::string whole = model.written("an a", 8);
  CHECK(session_of(model, {"an a", ""}, 5, [asked = 0]() mutable { return ++asked == 4; }) ==
        whole.substr(0, 3) + "\n" + with_end(whole.substr(3, 5)));
  const std::string note = "(Ctrl-C once more, Ctrl-D or :quit ends)\n";
  CHECK(session_of(model, {"^C", ":length", "^C", "^C", ":length"}, 1) == note + "length 1\n" + note);
}

TEST_CASE("session: words that are typed later begin a line") {
  DrawnModel model(data::TokenKind::word);
  std::string all;
  const SamplingOptions likeliest{.temperature = 0};
  const auto show = [&all](std::string_view piece) { all += piece; };
  model.writer->read("a n", "the test");
  model.writer->write(3, likeliest, show);
  const std::string first = std::exchange(all, {});
  CHECK(model.writer->read(" g   o ", "the test") == "g o");
  model.writer->write(4, likeliest, show);
  const std::string whole = with_end("a n" + first) + "g o";
  REQUIRE(all != model.written("a n" + first + " g o", 4, likeliest));
  CHECK(all == model.written(whole, 4, likeliest));
  CHECK_THAT(session_of(model, {"a xx n"}, 4),
             StartsWith("the line must have only words that the model knows, got 'xx'") && EndsWith("position 2\n"));
}

TEST_CASE("session: lines of a stream are texts of their own") {
  DrawnModel model;
  const auto lines_of = [&](const std::string& bytes) {
    std::istringstream stream(bytes);
    StreamLines lines(stream);
    std::string all;
    const std::int64_t count =
        write_for_lines(*model.writer, lines, {.length = 6}, [&all](std::string_view piece) { all += piece; });
    return std::pair(count, all);
  };
  const std::string a = with_end("an a" + model.written("an a", 6)), b = with_end("go" + model.written("go", 6)),
                    empty = with_end(model.written("", 6));
  CHECK(lines_of("an a\ngo\r\n\nan a") == std::pair(std::int64_t{4}, a + b + empty + a));
  CHECK(lines_of("") == std::pair(std::int64_t{0}, std::string()));
  CHECK_THAT(message_of<UsageError>([&] { lines_of("go\nZ"); }), ContainsSubstring("line 2 of standard input"));
}

namespace {

/// `engram generate` with this model at a pseudo-terminal.
class Terminal {
 public:
  Terminal(const DrawnModel& model, const char* kind) {
    const std::string path = model.path().string();
    const std::string program = program_of_build();
    winsize size{.ws_row = 24, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
    id_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
    if (id_ != 0) return;
    heed_signals();
    ::setenv("TERM", kind, 1);
    ::setenv("OMP_WAIT_POLICY", "passive", 1);
    ::execl(program.c_str(), program.c_str(), "generate", path.c_str(), "--threads", "1", "--length", "9", nullptr);
    ::_exit(127);
  }
  ~Terminal() {
    if (!opened()) return;
    if (!ended_) ::kill(id_, SIGKILL);
    exit_code();
    ::close(terminal_);
  }
  bool opened() const { return id_ > 0; }

  void type(std::string_view keys) {
    REQUIRE(::write(terminal_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size()));
  }
  /// What the terminal shows up to `text`, since the last call. Fails after half a minute in which nothing comes, and
  /// after a megabyte.
  std::string until(const std::string& text) {
    for (;;) {
      if (const std::size_t found = shown_.find(text); found != std::string::npos) {
        const std::string part = shown_.substr(0, found + text.size());
        shown_.erase(0, part.size());
        return part;
      }
      INFO("wanted: " << text << "\nshown: " << shown_);
      REQUIRE(shown_.size() < 1'000'000);
      pollfd one{terminal_, POLLIN, 0};
      REQUIRE(::poll(&one, 1, 30'000) == 1);
      char bytes[4096];
      const ssize_t count = ::read(terminal_, bytes, sizeof(bytes));
      REQUIRE(count > 0);
      shown_.append(bytes, static_cast<std::size_t>(count));
    }
  }
  int exit_code() {
    int status = 0;
    if (!ended_ && ::waitpid(id_, &status, 0) == id_) ended_ = status;
    return ended_ && WIFEXITED(*ended_) ? WEXITSTATUS(*ended_) : -1;
  }
  pid_t id() const { return id_; }
  int descriptor() const { return terminal_; }

 private:
  int terminal_ = -1;
  pid_t id_ = -1;
  std::optional<int> ended_;
  std::string shown_;
};

/// As a terminal shows it.
std::string on_terminal(const std::string& text) {
  std::string all;
  for (const char byte : text) all += byte == '\n' ? std::string("\r\n") : std::string(1, byte);
  return all;
}

}  // namespace

TEST_CASE("session: at a terminal, with the editing of lines and without") {
  DrawnModel model;
  const std::string kind = GENERATE(std::string("xterm"), std::string("dumb"));
  CAPTURE(kind);
  Terminal terminal(model, kind.c_str());
  if (!terminal.opened()) return;  // where there are none
  CHECK_THAT(terminal.until("> "), ContainsSubstring("model.safetensors, step 0") && ContainsSubstring(":help"));
  terminal.type("an a\n");
  CHECK_THAT(terminal.until("> "), ContainsSubstring("an a\r\n" + on_terminal(with_end(model.written("an a", 9)))));
  terminal.type("zz\x03");
  CHECK_THAT(terminal.until("> "), ContainsSubstring("Ctrl-C once more"));
  terminal.type(":length 1000000000\n");
  terminal.until("\r\nlength 1000000000\r\n> ");
  terminal.type("\n");
  terminal.until("\r\n");
  terminal.until("a");  // it writes
  terminal.type("\x03");
  terminal.until("> ");
  if (kind == "xterm" && can_edit_lines()) {
    terminal.type("\x1b[A\n");  // the line before
    terminal.until("\r\nlength 1000000000\r\n> ");
  }
  terminal.type(":len\x7f\x7f\x7fseed\n");
  terminal.until("\r\nseed 1\r\n> ");
  if (kind == "xterm") {
    terminal.type("\x04");
  } else {
    terminal.type("\x03");
    terminal.until("> ");
    terminal.type("\x03");
  }
  CHECK(terminal.exit_code() == 0);
}

TEST_CASE("session: a signal ends it, and the terminal is as it was") {
  const DrawnModel model;
  Terminal terminal(model, "xterm");
  if (!terminal.opened()) return;  // where there are none
  const auto settings = [&] {
    termios now{};
    REQUIRE(::tcgetattr(terminal.descriptor(), &now) == 0);
    return now.c_lflag & (ICANON | ECHO);
  };
  const auto before = settings();
  REQUIRE(before == (ICANON | ECHO));
  terminal.until("> ");
  ::kill(terminal.id(), SIGTERM);
  CHECK_THAT(terminal.until("signal\r\n"), ContainsSubstring("ended by a signal"));
  CHECK(settings() == before);
  CHECK(terminal.exit_code() == 130);
}

TEST_CASE("session: generate reads lines that are piped, and writes a line's beginning where none come") {
  DrawnModel model;
  const Arguments arguments{"generate", model.path().string(), "--length", "5", "--threads", "1"};
  const auto output = [&](const std::string& input, const Arguments& more = {}) {
    Arguments all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    const ProcessResult result = run_engram(
        all, {.largest_file = {}, .stdout_path = "", .ignored = {}, .without_streams = false, .stdin_path = input});
    INFO(result.err);
    CHECK(result.exit_code == 0);
    return result.out;
  };
  const std::string start = model.written("", 5);
  CHECK(output("/dev/null") == start);
  CHECK(output(put_file(model / "none", "").string()) == start);
  const std::string lines = put_file(model / "lines", "an a\ngo\n").string();
  CHECK(output(lines) == with_end("an a" + model.written("an a", 5)) + with_end("go" + model.written("go", 5)));
  CHECK(output(lines, {"--prompt", "", "--dtype", "f64"}).size() == 5);
  CHECK_THAT(error_of({"generate", model.path().string(), "--dtype", "f16"}, 2), ContainsSubstring("f32, bf16 or f64"));
}

}  // namespace engram::harness::writing_session_test
