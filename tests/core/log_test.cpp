/// Where messages go.

#include "core/log.hpp"

#include <string>
#include <vector>

#include "tests/harness/catch.hpp"

namespace engram::log_test {

TEST_CASE("log: a sink gets whole messages, each with its level, until another one takes its place") {
  std::vector<std::string> first, second;
  const auto into = [](std::vector<std::string>& list) {
    return [&list](LogLevel level, std::string_view message) {
      list.push_back((level == LogLevel::warning ? "warning " : "info ") + std::string(message));
    };
  };
  const LogSink before = send_log_to(into(first));
  log(LogLevel::warning, "a");
  log(LogLevel::info, "b");
  log_line("c");
  const LogSink returned = send_log_to(into(second));
  log(LogLevel::info, "d");
  returned(LogLevel::info, "e");
  send_log_to(before);
  CHECK(first == std::vector<std::string>{"warning a", "info b", "info c", "info e"});
  CHECK(second == std::vector<std::string>{"info d"});
}

}  // namespace engram::log_test
