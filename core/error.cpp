#include "core/error.hpp"

#include <fmt/format.h>

#include "core/message_text.hpp"
#include "core/scope.hpp"

namespace engram {
namespace {

/// What others wrote is quoted in messages: a terminal gets text.
std::string with_scope(const std::string& message) {
  const std::string path = Scope::path();
  return path.empty() ? message_text(message) : "[" + path + "] " + message_text(message);
}

}  // namespace

Error::Error(const std::string& message) : std::runtime_error(with_scope(message)) {}

void append_text(std::string& out, std::string_view part) { out += part; }
void append_text(std::string& out, std::int64_t part) { fmt::format_to(std::back_inserter(out), "{}", part); }
void append_text(std::string& out, std::uint64_t part) { fmt::format_to(std::back_inserter(out), "{}", part); }
void append_text(std::string& out, double part) { fmt::format_to(std::back_inserter(out), "{:.6g}", part); }
void append_text(std::string& out, bool part) { out += part ? "true" : "false"; }

}  // namespace engram
