#include "apps/terminal/line_reader.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <istream>
#include <string_view>
#include <utility>

#ifdef ENGRAM_HAVE_LIBEDIT
#include <histedit.h>
#include <locale.h>

#include <cwchar>

#include "core/error.hpp"
#endif

namespace engram {
namespace {

void tell_terminal(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// Bytes that were read, at least one; 0 at the end of the input, which a lost terminal is too.
std::size_t read_input(char* bytes, std::size_t most) {
  ssize_t count = 0;
  do count = ::read(STDIN_FILENO, bytes, most);
  while (count < 0 && errno == EINTR);
  return count < 0 ? 0 : static_cast<std::size_t>(count);
}

/// Lines as the system's own editing gives them.
class PlainLines final : public LineReader {
 public:
  explicit PlainLines(SessionSignals& signals) : signals_(&signals) {}

  Got next(std::string& line) override {
    tell_terminal(kLinePrompt);
    for (;;) {
      if (const std::size_t end = held_.find('\n'); end != std::string::npos) {
        line.assign(held_, 0, end);
        held_.erase(0, end + 1);
        return Got::line;
      }
      const int signal = signals_->wait_for(STDIN_FILENO);
      if (signal == SIGINT) {
        held_.clear();
        tell_terminal("\n");
        return Got::interrupted;
      }
      if (signals_->ended() != 0) return Got::end;
      if (signal != 0) continue;
      std::array<char, 4096> bytes{};
      const std::size_t count = read_input(bytes.data(), bytes.size());
      held_.append(bytes.data(), count);
      if (count > 0) continue;
      tell_terminal("\n");
      line = std::exchange(held_, {});
      return line.empty() ? Got::end : Got::line;
    }
  }

 private:
  SessionSignals* signals_;
  std::string held_;
};

#ifdef ENGRAM_HAVE_LIBEDIT

/// On this thread characters are those of UTF-8 while it lives; numbers stay as they are.
class Utf8Locale {
 public:
  Utf8Locale() : utf8_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (utf8_ != nullptr) before_ = ::uselocale(utf8_);
  }
  ~Utf8Locale() {
    if (utf8_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(utf8_);
  }
  Utf8Locale(const Utf8Locale&) = delete;
  Utf8Locale& operator=(const Utf8Locale&) = delete;

 private:
  locale_t utf8_, before_ = nullptr;
};

/// Lines that libedit lets a person edit. It reads through read_character(), as its own way to read takes no notice of
/// signals that other threads get.
class EditedLines final : public LineReader {
 public:
  explicit EditedLines(SessionSignals& signals) : signals_(&signals) {
    const Utf8Locale utf8;
    editor_ = ::el_init("engram", stdin, stdout, stderr);
    history_ = ::history_init();
    if (editor_ == nullptr || history_ == nullptr) throw Error("generate: libedit could not be started");
    HistEvent event;
    ::history(history_, &event, H_SETSIZE, 1000);
    ::history(history_, &event, H_SETUNIQUE, 1);
    ::el_set(editor_, EL_CLIENTDATA, this);
    ::el_set(
        editor_, EL_PROMPT, +[](EditLine*) { return const_cast<char*>(kLinePrompt); });
    ::el_set(editor_, EL_EDITOR, "emacs");
    ::el_set(editor_, EL_HIST, ::history, history_);
    ::el_set(
        editor_, EL_GETCFN, +[](EditLine* editor, wchar_t* character) {
          void* self = nullptr;
          ::el_get(editor, EL_CLIENTDATA, &self);
          return static_cast<EditedLines*>(self)->read_character(character);
        });
  }
  ~EditedLines() override {
    const Utf8Locale utf8;
    ::el_end(editor_);  // sets the terminal as it was
    ::history_end(history_);
  }
  EditedLines(const EditedLines&) = delete;
  EditedLines& operator=(const EditedLines&) = delete;

  Got next(std::string& line) override {
    const Utf8Locale utf8;
    interrupted_ = false;
    // Before the prompt is seen, so that what is typed behind it is read as it is typed.
    ::el_set(editor_, EL_PREP_TERM, 1);
    int count = 0;
    const char* const typed = ::el_gets(editor_, &count);
    if (interrupted_) {
      tell_terminal("^C\n");
      return Got::interrupted;
    }
    if (typed == nullptr || count <= 0) {
      tell_terminal("\n");
      return Got::end;
    }
    line.assign(typed, static_cast<std::size_t>(count));
    if (line.ends_with('\n')) line.pop_back();
    HistEvent event;
    if (!line.empty()) ::history(history_, &event, H_ENTER, line.c_str());
    return Got::line;
  }

 private:
  /// 1 with a character, 0 at the end of the input, -1 where the line ends without one.
  int read_character(wchar_t* character) {
    std::mbstate_t state{};
    for (;;) {
      const int signal = signals_->wait_for(STDIN_FILENO);
      if (signal == SIGINT) interrupted_ = true;
      if (interrupted_ || signals_->ended() != 0) return -1;
      if (signal == SIGWINCH) ::el_resize(editor_);
      if (signal == SIGCONT) {
        // Whoever had the terminal meanwhile has set it otherwise.
        ::el_set(editor_, EL_PREP_TERM, 0);
        ::el_set(editor_, EL_PREP_TERM, 1);
        ::el_set(editor_, EL_REFRESH);
      }
      if (signal != 0) continue;
      char byte = 0;
      if (read_input(&byte, 1) == 0) return 0;
      const std::size_t used = std::mbrtowc(character, &byte, 1, &state);
      if (used == static_cast<std::size_t>(-2)) continue;  // more bytes of it follow
      if (used == static_cast<std::size_t>(-1)) *character = L'\ufffd';
      return 1;
    }
  }

  SessionSignals* signals_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
  bool interrupted_ = false;
};

#endif

}  // namespace

LineReader::Got StreamLines::next(std::string& line) {
  if (!std::getline(*stream_, line)) return Got::end;
  if (line.ends_with('\r')) line.pop_back();
  return Got::line;
}

bool can_edit_lines() {
#ifdef ENGRAM_HAVE_LIBEDIT
  return true;
#else
  return false;
#endif
}

std::unique_ptr<LineReader> terminal_lines(SessionSignals& signals) {
#ifdef ENGRAM_HAVE_LIBEDIT
  const char* const terminal = std::getenv("TERM");
  if (terminal != nullptr && std::string_view(terminal) != "dumb" && terminal[0] != '\0')
    return std::make_unique<EditedLines>(signals);
#endif
  return std::make_unique<PlainLines>(signals);
}

}  // namespace engram
