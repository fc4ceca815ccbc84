#include "apps/terminal/edit_distance.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace engram {

std::size_t edit_distance(std::string_view from, std::string_view to) {
  // Distances of the beginnings of `from`, the latest three, to all beginnings of `to`.
  std::vector<std::size_t> before(to.size() + 1), last(to.size() + 1), row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    before.swap(last);
    last.swap(row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      row[j + 1] = std::min({last[j] + (from[i] == to[j] ? 0 : 1), last[j + 1] + 1, row[j] + 1});
      if (i > 0 && j > 0 && from[i] == to[j - 1] && from[i - 1] == to[j])
        row[j + 1] = std::min(row[j + 1], before[j - 1] + 1);
    }
  }
  return row.back();
}

bool is_near(std::string_view given, std::string_view known) {
  const std::size_t most = std::max<std::size_t>(1, given.size() / 3);
  return least_distance(given, known) <= most && edit_distance(given, known) <= most;
}

}  // namespace engram
