#pragma once
/// The ways of `engram bench`. Each times and prints, and throws UsageError for what does not fit it.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "core/communicator.hpp"

namespace engram {

/// What all ways share.
struct BenchOptions {
  std::vector<std::string> configs, overrides;
  std::int64_t steps = 10;
  std::int64_t vocabulary = 0;  ///< 0: the config's
  std::int64_t tokens = 0;      ///< of a step; 0: the usual ones
  std::int64_t product_size = 4000;
  std::string device = "cpu", dtype;
  std::string svg;  ///< file of a drawing; empty: none
  int threads = 0;
  bool json = false;
};

/// Configs: training, with --compare-spans or --inference.
struct BenchModelsArguments {
  std::string filter;
  std::vector<std::int64_t> spans;  ///< positions
  bool compare_spans = false;
  bool inference = false;
  bool side_by_side = false;
  std::vector<std::string> vary;  ///< key=values: each config with each of them
  double one_rank_ms = 0;         ///< of a step of one rank, as it was measured before; 0: it was not
};
/// Of several ranks training alone.
void bench_models(const BenchModelsArguments& arguments, const BenchOptions& shared, Communicator& ranks);

/// --softmax.
void bench_softmax(const BenchOptions& shared);

/// --against-vanilla.
struct BenchVanillaArguments {
  bool wanted = false;
  std::vector<std::int64_t> lengths{100, 200, 400, 800};

  /// Adds the flag and its options to the command, which this must outlive. Returns the flag.
  Option* add_to(Command& command);
};
void bench_vanilla(const BenchVanillaArguments& arguments, const BenchOptions& shared);

/// --cost.
struct BenchCostArguments {
  bool wanted = false;
  std::string kernel;  ///< that alone, with all that was counted; empty: a table of all
  int blocks = 0;      ///< of each launch that stand for the others; 0: all are counted
  bool groups = false;

  /// Adds the flag and its options to the command, which this must outlive. Returns the flag.
  Option* add_to(Command& command);
};
void bench_cost(const BenchCostArguments& arguments, const std::vector<std::int64_t>& spans,
                const BenchOptions& shared);

/// --memory, of the CPU alone.
struct BenchProductKeysArguments {
  bool wanted = false;
  std::vector<std::int64_t> slots;
  std::vector<std::string> parts{"read", "layer", "flat", "training"};
  std::string values = "f32";
  std::int64_t width = 1024, heads = 4, selected = 32, query_width = 512, layer_tokens = 512, flat_tokens = 32;

  /// Adds the flag and its options to the command, which this must outlive. Returns the flag.
  Option* add_to(Command& command);
};
void bench_product_keys(const BenchProductKeysArguments& arguments, const BenchOptions& shared);

}  // namespace engram
