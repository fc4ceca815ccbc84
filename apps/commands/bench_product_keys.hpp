#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/bench_options.hpp"

namespace engram {

/// `engram bench --memory`: its own options.
struct BenchProductKeysArguments {
  bool wanted = false;
  std::vector<std::int64_t> slots;
  std::vector<std::string> parts{"read", "layer", "flat", "training"};
  std::string values = "f32";
  std::int64_t width = 1024, heads = 4, selected = 32, query_width = 512, layer_tokens = 512, flat_tokens = 32;
};

/// Adds the flag and its options to the command; `arguments` must outlive it. Returns the flag.
Option* add_bench_product_keys_options(Command& command, BenchProductKeysArguments& arguments);
/// Times and prints. Throws UsageError for sizes that do not fit, and for devices other than the CPU.
void bench_product_keys(const BenchProductKeysArguments& arguments, const BenchOptions& shared);

}  // namespace engram
