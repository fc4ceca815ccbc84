#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "apps/studies/bench/product_key_bench_report.hpp"

namespace engram {
namespace {

constexpr std::int64_t kLeastFlat = 65536, kSmallest = 16384, kMillion = 1048576, kLargest = 4194304;

/// The least and the most over the sizes from `first` to `last`.
struct Spread {
  std::int64_t first, last;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  bool has_first = false, has_last = false;
  void add(std::int64_t slots, double value) {
    if (value <= 0 || slots < first || slots > last) return;
    least = std::min(least, value);
    most = std::max(most, value);
    has_first = has_first || slots == first;
    has_last = has_last || slots == last;
  }
  /// Whether both ends were measured: without them it says nothing about the range.
  bool whole() const { return has_first && has_last; }
  double ratio() const { return least / most; }
};

class Verdicts {
 public:
  Verdicts(const ProductKeyBench& bench, const ProductKeyBenchResult& result) : bench_(bench), result_(result) {}

  std::vector<ProductKeyVerdict> all() {
    plain_loop();
    flat_reads();
    flat_layers();
    cost_model();
    flat_keys();
    updates();
    return std::move(found_);
  }

 private:
  void plain_loop() {
    for (const ReadRun& run : result_.reads) {
      if (run.slots != kMillion) continue;
      if (run.plain.any())
        add(fmt::format("read of 1M slots against the plain loop, {} threads, times", run.threads),
            run.speed() / run.plain_speed(), 1.9, true);
    }
  }
  using Figure = std::function<double(const ReadRun&)>;
  void flat_reads(int threads, std::int64_t first, std::int64_t last, double aim, const char* how,
                  const Figure& figure) {
    Spread spread{first, last};
    for (const ReadRun& run : result_.reads)
      if (run.threads == threads) spread.add(run.slots, figure(run));
    if (spread.whole())
      add(fmt::format("read from {} to {} slots, slowest over fastest, {} threads, {}", first, last, threads, how),
          spread.ratio(), aim, true);
  }
  void flat_reads() {
    std::vector<int> counts;
    for (const ReadRun& run : result_.reads)
      if (std::ranges::find(counts, run.threads) == counts.end()) counts.push_back(run.threads);
    for (const int threads : counts) {
      const Figure flushed = [](const ReadRun& run) { return run.flushed_speed(); };
      const Figure any = [](const ReadRun& run) { return run.speed(); };
      for (const auto& [how, figure] :
           {std::pair{"rows out of the caches", flushed}, std::pair{"caches as they are", any}}) {
        flat_reads(threads, kLeastFlat, kMillion, 0.9, how, figure);
        flat_reads(threads, kLeastFlat, kLargest, 0.9, how, figure);
        flat_reads(threads, kSmallest, kLargest, 0.8, how, figure);
      }
    }
  }
  void flat_layers() {
    for (const auto& [first, aim] : {std::pair{kLeastFlat, 0.9}, std::pair{kSmallest, 0.8}}) {
      Spread spread{first, kLargest};
      for (const LayerRun& run : result_.layers)
        if (run.keys == KeyKind::product) spread.add(run.slots, run.without_scores());
      if (spread.whole())
        add(fmt::format("layer without sub-key products from {} to {} slots, fastest over slowest", first, kLargest),
            spread.ratio(), aim, true);
    }
  }
  void cost_model() {
    for (const LayerRun& run : result_.layers) {
      if (run.keys != KeyKind::product) continue;
      const double ratio = run.whole.median() / model_seconds(bench_, result_, run);
      add(fmt::format("layer of {} slots, time over the cost model", run.slots), ratio, 1.25, false);
    }
  }
  void flat_keys() {
    const LayerRun *first = nullptr, *last = nullptr;
    for (const LayerRun& run : result_.layers) {
      if (run.keys != KeyKind::flat || run.slots < kLeastFlat || run.slots > kMillion) continue;
      if (first == nullptr) first = &run;
      last = &run;
    }
    if (first == last) return;
    const double slots = static_cast<double>(last->slots) / static_cast<double>(first->slots);
    const double growth = last->whole.median() / first->whole.median() / slots;
    add(fmt::format("flat keys from {} to {} slots, growth of the time over that of the slots, or its inverse",
                    first->slots, last->slots),
        std::max(growth, 1 / growth), 2, false);
  }
  void updates() {
    for (const ProductKeyTrainingRun& run : result_.trainings) {
      const double floor = (run.update_bytes + run.catch_up_bytes) / result_.machine.bytes_per_second;
      const char* rule = run.kind == TableKind::row_adagrad ? "row-wise AdaGrad"
                         : run.mode == TableMode::deferred  ? "Adam, deferred"
                                                            : "Adam, lazy";
      add(fmt::format("update of a table of {} slots, {}, time over its bytes at the copy's rate", run.slots, rule),
          run.update_seconds() / floor, 1.3, false);
    }
  }
  void add(std::string what, double figure, double aim, bool at_least) {
    found_.push_back({.what = std::move(what), .figure = figure, .aim = aim, .at_least = at_least});
  }

  const ProductKeyBench& bench_;
  const ProductKeyBenchResult& result_;
  std::vector<ProductKeyVerdict> found_;
};

}  // namespace

double ProductKeyBenchResult::row_rate(const ProductKeyBench& bench, int threads) const {
  double rate = machine.bytes_per_second;
  std::int64_t largest = 0;
  for (const ReadRun& run : reads) {
    if (run.threads != threads || run.slots < largest || !run.flushed.any()) continue;
    largest = run.slots;
    rate = run.flushed_speed() * static_cast<double>(bench.reads() * bench.row_bytes());
  }
  return rate;
}

double model_seconds(const ProductKeyBench& bench, const ProductKeyBenchResult& result, const LayerRun& run) {
  int threads = 1;
  for (const ReadRun& read : result.reads) threads = std::max(threads, read.threads);
  return (run.query_flops + run.score_flops) / result.machine.flops_per_second +
         run.read_bytes / result.row_rate(bench, threads);
}

std::vector<ProductKeyVerdict> product_key_verdicts(const ProductKeyBench& bench, const ProductKeyBenchResult& result) {
  return Verdicts(bench, result).all();
}

}  // namespace engram
