#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"

namespace engram {

/// `engram bench --against-vanilla`: its own options, and what it shares with the command's other ways.
struct BenchVanillaArguments {
  bool wanted = false;
  std::vector<std::int64_t> lengths{100, 200, 400, 800};
  std::string svg;

  struct Shared {
    std::vector<std::string> configs, overrides;
    std::int64_t vocabulary = 0;  ///< 0: the config's
    std::int64_t steps = 1;
    std::string device = "cpu";
    int threads = 0;
    bool json = false;
  };
};

/// Adds the flag and its options to the command; `arguments` must outlive it. Returns the flag.
Option* add_bench_vanilla_options(Command& command, BenchVanillaArguments& arguments);
/// Times, prints, draws. Throws UsageError for several configs, or one that does not fit.
void bench_vanilla(const BenchVanillaArguments& arguments, const BenchVanillaArguments::Shared& shared);

}  // namespace engram
