#pragma once
/// What commands of the built program must answer: the JSON of one that succeeds, the message of one that fails.

#include <string>

#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness {

/// The single line on stdout.
inline nlohmann::json json_of(const Arguments& arguments) {
  const ProcessResult result = run_engram(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  REQUIRE(result.out.find('\n') == result.out.size() - 1);
  return nlohmann::json::parse(result.out);
}

/// What is on stderr, with nothing on stdout.
inline std::string error_of(const Arguments& arguments, int exit_code) {
  const ProcessResult result = run_engram(arguments);
  CHECK(result.exit_code == exit_code);
  CHECK(result.out.empty());
  return result.err;
}

}  // namespace engram::harness
