#include "apps/commands/output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/terminal_line.hpp"
#include "core/wrapped_message.hpp"

namespace engram {

void print(std::string_view text) {
  bool written = false;
  int error = 0;
  beside_terminal_line([&] {
    written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
    error = errno;
  });
  if (written) return;
  throw FileError(engram::text("standard output: could not be written: ", std::strerror(error)));
}

void print_report(std::string_view text) { print(wrapped_message(text, message_columns(STDOUT_FILENO))); }

void print_json(const nlohmann::json& object) {
  print(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

}  // namespace engram
