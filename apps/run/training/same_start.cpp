#include "apps/run/training/same_start.hpp"

#include <map>
#include <vector>

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
  if (ranks.alone()) return;
  const std::string names[] = {"the program", "the data", "--device", "--dtype", "the checkpoint", "the configuration"};
  const std::string* const values[] = {&own.program, &own.data, &own.device, &own.dtype, &own.checkpoint, &own.config};
  for (std::size_t i = 0; i < std::size(values); ++i) {
    const std::vector<std::string> all = ranks.gather_texts(*values[i]);
    for (std::size_t q = 1; q < all.size(); ++q) {
      if (all[q] == all[0]) continue;
      const std::string first = ranks.name(0), other = ranks.name(static_cast<int>(q));
      const std::string difference = values[i] == &own.config
                                         ? config_difference(all[0], all[q], first, other)
                                         : text(all[0], " on ", first, " and ", all[q], " on ", other);
      throw UsageError(text("ranks: ", names[i], " must be the same everywhere, got",
                            values[i] == &own.config ? "" : " ", difference));
    }
  }
}

}  // namespace engram
