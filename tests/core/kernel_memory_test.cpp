/// Kernels of the CPU that take memory beside their tensors say so, or a run's memory would be counted without it
/// (docs/reference/memory.md).

#include <algorithm>
#include <filesystem>
#include <string>

#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::kernel_memory_test {
namespace {

TEST_CASE("kernel memory: who takes a workspace is called in steps that only count, and returns", "[kernel]") {
  int found = 0;
  for (const source_tree::SourceFile& file : source_tree::all_sources(ENGRAM_SOURCE_DIR)) {
    if (!file.path.starts_with("cpu/") || !file.path.ends_with(".cpp")) continue;
    const auto has = [&](const char* words) {
      return std::ranges::any_of(file.lines,
                                 [&](const std::string& line) { return line.find(words) != std::string::npos; });
    };
    // Of its own, or of what products round their operands in.
    if (!has(".workspace(") && !has("RoundingMemory ") && !has("Workspace ")) continue;
    ++found;
    CAPTURE(file.path);
    CHECK(has("KernelMemory::workspace"));
    CHECK(has("step.computes()"));
  }
  CHECK(found >= 15);
}

}  // namespace
}  // namespace engram::kernel_memory_test
