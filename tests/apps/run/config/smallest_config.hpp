#pragma once
/// The smallest whole configuration of an all-attention model, and what is said of wrong ones.

#include <algorithm>
#include <string>
#include <vector>

#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness {

inline const std::string kSmallestConfig = R"(
# a comment
[model]
layers = 2      # another one
width = 16
heads = 4
slots = 8
max_span = 64
[schedule]
rate = 0.07
steps = 10
)";

/// This configuration and more of it: `more`, with what its sections lack behind them and the other sections at the
/// end, so that places up to the end of the first section of `more` stay as they are.
inline std::string smallest_with(std::string more) {
  if (!more.empty() && !more.ends_with('\n')) more += '\n';
  const std::size_t schedule = kSmallestConfig.find("[schedule]\n");
  for (std::string section : {kSmallestConfig.substr(0, schedule), kSmallestConfig.substr(schedule)}) {
    section.erase(0, section.find('['));
    const std::size_t header = section.find('\n') + 1, given = more.find(section.substr(0, header));
    if (given == std::string::npos)
      more += section;
    else
      more.insert(std::min(more.find("\n[", given), more.size() - 1) + 1, section.substr(header));
  }
  return more;
}

/// Of this configuration and more of its text.
inline RunConfig parse(const std::string& more, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(smallest_with(more), "test.toml", overrides);
}
inline std::string refusal(const std::string& more, const std::vector<std::string>& overrides = {}) {
  return message_of<UsageError>([&] { parse(more, overrides); });
}

}  // namespace engram::harness
