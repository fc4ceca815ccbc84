#pragma once
/// A small run of the product-key family with two memories.

#include <string>
#include <vector>

#include "tests/apps/run/run_fixture.hpp"

namespace engram::harness {

inline constexpr std::int64_t kMemorySlots = 144, kMemoryHeads = 2, kMemorySelected = 3;

inline TrainingRunOptions memory_run(const RunFolder& folder, const std::string& out,
                                     std::vector<std::string> overrides = {}) {
  TrainingRunOptions options = run_options(folder, out);
  options.config = put_file(folder / "memory.toml", R"([model]
family = "product_key"
layers = 3
width = 16
heads = 2
position_rows = 24
[product_key]
layers = [1, 3]
subkeys = 12
heads = 2
selected = 3
query_width = 8
[optimizer]
kind = "adam"
clip = 5
[schedule]
rate = 0.01
steps = 12
[training]
batch = 4
block = 20
validate_every = 4
validate_blocks = 2
report_every = 5
checkpoint_every = 12
seed = 11
)");
  options.overrides = std::move(overrides);
  return options;
}

}  // namespace engram::harness
