#pragma once
/// A product-key memory against the limits of the machine: the read of values by the number of slots, the whole layer,
/// and its training step. [product-key 6, 7, 10] (test 24).

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/run/model/runtime.hpp"
#include "apps/studies/bench/machine_limits.hpp"
#include "core/stopwatch.hpp"
#include "nn/layers/product_key_options.hpp"
#include "nn/optim/table_optimizer.hpp"

namespace engram {

struct ProductKeyBench {
  std::vector<std::int64_t> slots{16384, 65536, 262144, 1048576, 4194304};  ///< squares; sizes of the table
  std::int64_t width = 1024;                                                ///< of the model and of values
  std::int64_t heads = 4, selected = 32, query_width = 512;
  DType values = DType::f32;        ///< or bf16
  std::int64_t tokens = 1024;       ///< of a training step, and of a pass that reads values
  std::int64_t layer_tokens = 512;  ///< of a forward pass of the layer
  std::int64_t flat_tokens = 32;    ///< of one with flat keys
  std::int64_t steps = 10;          ///< timed passes of everything

  std::int64_t reads() const { return heads * selected; }  ///< of a token
  std::int64_t row_bytes() const { return width * static_cast<std::int64_t>(size_of(values)); }
  /// n for so many slots. Throws UsageError for a number that is not a square.
  std::int64_t subkeys(std::int64_t of_slots) const;
  ProductKeyOptions layer(std::int64_t of_slots, KeyKind keys) const;
  /// Throws UsageError naming the option and its value.
  void check() const;
};

/// Times of several passes.
struct PassTimes {
  std::vector<double> seconds;  ///< ascending once sorted()

  PassTimes& sorted() {
    std::ranges::sort(seconds);
    return *this;
  }
  bool any() const { return !seconds.empty(); }
  /// p from 0 to 1; 0 where nothing was timed.
  double quantile(double p) const {
    if (seconds.empty()) return 0;
    return seconds[static_cast<std::size_t>(std::lround(p * static_cast<double>(seconds.size() - 1)))];
  }
  double median() const { return quantile(0.5); }
  /// What is done `count` times in a pass, per second; 0 where nothing was timed.
  double rate(double count) const { return seconds.empty() ? 0 : count / median(); }
};

template <class Action>
double seconds_of(Action&& action) {
  const Stopwatch watch;
  action();
  return watch.seconds();
}

/// Why `what` with so many bytes is not measured, or nothing: the system must have them and a tenth more.
std::string too_large(const std::string& what, double bytes);

/// The read of values: the library's kernel with huge pages and rows asked for ahead, beside a plain loop in ordinary
/// pages. Ids of a pass are drawn anew, so rows of tables within the caches often come from there; `flushed` is with
/// distinct rows in a pass that were put out of the caches before it.
struct ReadRun {
  std::int64_t slots = 0;
  int threads = 1;
  std::int64_t tokens = 0, flushed_tokens = 0;  ///< of a pass
  PassTimes kernel, flushed, plain, flushed_plain;
  PassTimes in_order;  ///< as many bytes read from front to back, also put out of the caches before

  double speed() const { return kernel.rate(static_cast<double>(tokens)); }
  double flushed_speed() const { return flushed.rate(static_cast<double>(flushed_tokens)); }
  double plain_speed() const { return plain.rate(static_cast<double>(tokens)); }
  double flushed_plain_speed() const { return flushed_plain.rate(static_cast<double>(flushed_tokens)); }
  double in_order_speed() const { return in_order.rate(static_cast<double>(flushed_tokens)); }
};

enum class LayerStage : std::uint8_t { query, scores, select, softmax, read, other };
inline constexpr std::size_t kLayerStages = 6;
const char* name_of(LayerStage stage);

/// A forward pass of the layer in evaluation.
struct LayerRun {
  KeyKind keys = KeyKind::product;
  std::int64_t slots = 0, tokens = 0;
  PassTimes whole, stages[kLayerStages];
  double query_flops = 0, score_flops = 0, exponentials = 0, read_bytes = 0;  ///< of a pass

  double without_scores() const;  ///< seconds: median of the rest
};

/// A training step of the layer alone.
struct ProductKeyTrainingRun {
  std::int64_t slots = 0, tokens = 0;
  TableKind kind = TableKind::adam;
  TableMode mode = TableMode::lazy;
  double touched = 0, behind = 0;  ///< rows: with a gradient; that catch up (deferred); means of the steps
  PassTimes step, forward, backward, order, update, catch_up, rest;
  double read_bytes = 0, gradient_bytes = 0, update_bytes = 0, catch_up_bytes = 0;  ///< floors of a step

  /// Of the table's update, with what catches up before the read.
  double update_seconds() const { return update.median() + catch_up.median(); }
};

struct ProductKeyBenchResult {
  MachineLimits machine;
  double one_thread_copy = 0;  ///< bytes per second, read and written
  std::vector<ReadRun> reads;
  std::vector<LayerRun> layers;
  std::vector<ProductKeyTrainingRun> trainings;
  std::vector<std::string> skipped;  ///< what there is no memory for

  /// Bytes per second at which rows anywhere in the largest table come from memory, on so many threads: the read's own
  /// rate; that of a copy where it was not measured.
  double row_rate(const ProductKeyBench& bench, int threads) const;
};

/// Each part adds to the result: one table is in memory at a time.
void bench_product_key_reads(const ProductKeyBench& bench, Runtime& runtime, ProductKeyBenchResult& result);
void bench_product_key_layer(const ProductKeyBench& bench, KeyKind keys, Runtime& runtime,
                             ProductKeyBenchResult& result);
void bench_product_key_training(const ProductKeyBench& bench, Runtime& runtime, ProductKeyBenchResult& result);

}  // namespace engram
