/// Which kernels a build uses on this machine.

#include "cpu/instruction_level.hpp"

#include <cstdlib>
#include <string_view>

#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::cpu::instruction_level_test {
namespace {

TEST_CASE("the CPU backend uses the instructions that were asked for") {
  harness::available_backends();  // opens it
  const std::string& level = use_best_instructions();
  const char* const asked = std::getenv("ENGRAM_CPU");
  INFO("in use: " << level);
  CHECK((level == "native" || level == "baseline" || level == "avx2" || level == "avx512"));
  if (asked != nullptr && level != "native") CHECK(level == asked);
}

}  // namespace
}  // namespace engram::cpu::instruction_level_test
