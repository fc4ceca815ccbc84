#include "apps/studies/page/page_config.hpp"

#include <algorithm>
#include <cstddef>

#include "apps/run/config/config_entries.hpp"
#include "apps/run/config/run_config_file.hpp"

namespace engram {

std::string toml_of(const PageRun& run) {
  if (!run.toml.empty() || !run.study || !run.study->facts) return run.toml;
  return to_toml(run.study->facts->config);
}

ConfigTable differing_keys(const std::vector<PageRun>& runs) {
  ConfigTable table;
  std::vector<std::string> order;
  for (const PageRun& run : runs) {
    auto& values = table.values.emplace_back();
    std::size_t place = 0;
    for (auto& [key, value] : config_entries(toml_of(run))) {
      values[key] = value;
      const auto found = std::ranges::find(order, key);
      // A key of one family alone stands behind the one before it.
      if (found != order.end())
        place = static_cast<std::size_t>(found - order.begin());
      else
        order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), key);
      ++place;
    }
  }
  for (const std::string& key : order) {
    const std::string* seen = nullptr;
    bool differs = false;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (table.values[i].empty()) continue;
      const auto found = table.values[i].find(key);
      static const std::string missing;
      const std::string& value = found == table.values[i].end() ? missing : found->second;
      differs = differs || (seen != nullptr && *seen != value);
      seen = &value;
    }
    if (differs) table.keys.push_back(key);
  }
  return table;
}

}  // namespace engram
