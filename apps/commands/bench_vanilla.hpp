#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/bench_options.hpp"

namespace engram {

/// `engram bench --against-vanilla`: its own options.
struct BenchVanillaArguments {
  bool wanted = false;
  std::vector<std::int64_t> lengths{100, 200, 400, 800};
  std::string svg;
};

/// Adds the flag and its options to the command; `arguments` must outlive it. Returns the flag.
Option* add_bench_vanilla_options(Command& command, BenchVanillaArguments& arguments);
/// Times, prints, draws. Throws UsageError for several configs, or one that does not fit.
void bench_vanilla(const BenchVanillaArguments& arguments, const BenchOptions& shared);

}  // namespace engram
