#include "apps/run/training/same_start.hpp"

#include <map>
#include <utility>

#include "apps/run/config/config_text.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Key by key: "training.batch = 8 on rank 0 (...) and 16 on rank 1 (...)", a line each.
std::string config_difference(const std::string& first, const std::string& other, const std::string& on_first,
                              const std::string& on_other) {
  std::map<std::string, std::pair<std::string, std::string>> values;
  for (const Assignment& assignment : read_assignments(first, on_first))
    values[assignment.full_name()].first = assignment.written();
  for (const Assignment& assignment : read_assignments(other, on_other))
    values[assignment.full_name()].second = assignment.written();
  std::string lines;
  for (const auto& [key, pair] : values)
    if (pair.first != pair.second)
      lines += text("\n  ", key, " = ", pair.first.empty() ? "(nothing)" : pair.first, " on ", on_first, ", ",
                    pair.second.empty() ? "(nothing)" : pair.second, " on ", on_other);
  return lines.empty() ? text("\n  another order or notation on ", on_other) : lines;
}

}  // namespace

void require_same_start(Communicator& ranks, const StartFacts& own) {
  ranks.require_same("the program", own.program);
  ranks.require_same("the data", own.data);
  ranks.require_same("--device", own.device);
  ranks.require_same("--dtype", own.dtype);
  ranks.require_same("the checkpoint", own.checkpoint);
  ranks.require_same("the configuration", own.config, {}, config_difference);
}

void require_same_instructions(Communicator& ranks, const Backend& backend) {
  ranks.require_same(
      "the instructions of the processors", backend.instructions(),
      "the lower ones for all, by mpirun -x: ONEDNN_MAX_CPU_ISA=AVX2, and ENGRAM_CPU=avx2 for a portable "
      "build");
}

}  // namespace engram
