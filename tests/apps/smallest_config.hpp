#pragma once
/// The smallest whole configuration of an all-attention model, and what is said of wrong ones.

#include <string>
#include <vector>

#include "apps/config/run_config.hpp"
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

/// Of this configuration and more of its text.
inline RunConfig parse(const std::string& more, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(kSmallestConfig + more, "test.toml", overrides);
}
inline std::string refusal(const std::string& more, const std::vector<std::string>& overrides = {}) {
  return message_of<UsageError>([&] { parse(more, overrides); });
}

}  // namespace engram::harness
