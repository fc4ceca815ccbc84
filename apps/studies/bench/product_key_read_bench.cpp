#include <cmath>
#include <memory>
#include <numeric>

#include "apps/studies/bench/product_key_bench.hpp"
#include "apps/studies/bench/random_rows.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/weighted_rows.hpp"

namespace engram {
namespace {

constexpr double kWeight = 0.01;

/// One table's passes. Everything is in the memory of the host, which the kernels of the CPU share.
class ReadPasses {
 public:
  ReadPasses(const ProductKeyBench& bench, std::int64_t slots, Runtime& runtime)
      : bench_(bench),
        runtime_(runtime),
        random_(slots),
        tokens_(bench.tokens),
        flushed_tokens_(std::min(bench.tokens, slots / bench.reads())),
        ids_({tokens_, bench.reads()}, DType::i64, runtime.backend().device(), runtime.memory()),
        weights_(ids_.shape(), DType::f32, runtime.backend().device(), runtime.memory()),
        y_({tokens_, bench.width}, DType::f32, runtime.backend().device(), runtime.memory()) {
    kernels::fill(runtime.step(), weights_, kWeight);
  }
  std::int64_t tokens() const { return tokens_; }
  std::int64_t flushed_tokens() const { return flushed_tokens_; }

  void kernel(const Tensor& table, ReadRun& run) {
    const auto read = [&](std::int64_t tokens) {
      Tensor y = y_.rows(0, tokens);
      kernels::weighted_rows_forward(runtime_.step(), table, ids_.rows(0, tokens), weights_.rows(0, tokens), y);
    };
    passes(table.raw(), run.threads, read, run.kernel, run.flushed);
    const auto first = ids(flushed_tokens_);
    std::iota(first.begin(), first.end(), std::int64_t{0});
    const auto row_bytes = static_cast<std::size_t>(bench_.row_bytes());
    for (std::int64_t pass = -1; pass < bench_.steps && !first.empty(); ++pass) {
      if (!flush_rows(table.raw(), row_bytes, first, run.threads)) return;
      const double seconds =
          seconds_of([&] { sum_ += read_in_order(table.raw(), first.size() * row_bytes, run.threads); });
      if (pass >= 0) run.in_order.seconds.push_back(seconds);
    }
    run.in_order.sorted();
  }
  void plain(const void* table, ReadRun& run) {
    const auto read = [&](std::int64_t tokens) {
      const auto reads = static_cast<std::size_t>(tokens * bench_.reads());
      plain_weighted_rows(table, bench_.values, bench_.width, ids(tokens), {weights_.data<const float>(), reads},
                          bench_.reads(), y_.data<float>(), run.threads);
    };
    passes(table, run.threads, read, run.plain, run.flushed_plain);
  }

 private:
  std::span<std::int64_t> ids(std::int64_t tokens) {
    return {ids_.data<std::int64_t>(), static_cast<std::size_t>(tokens * bench_.reads())};
  }
  template <class Read>
  void passes(const void* table, int threads, const Read& read, PassTimes& any, PassTimes& flushed) {
    for (std::int64_t pass = -1; pass < bench_.steps; ++pass) {
      random_.draw(ids(tokens_));
      const double seconds = seconds_of([&] { read(tokens_); });
      if (pass >= 0) any.seconds.push_back(seconds);
    }
    any.sorted();
    for (std::int64_t pass = -1; pass < bench_.steps && flushed_tokens_ > 0; ++pass) {
      random_.draw_distinct(ids(flushed_tokens_));
      if (!flush_rows(table, static_cast<std::size_t>(bench_.row_bytes()), ids(flushed_tokens_), threads)) return;
      const double seconds = seconds_of([&] { read(flushed_tokens_); });
      if (pass >= 0) flushed.seconds.push_back(seconds);
    }
    flushed.sorted();
  }

  const ProductKeyBench& bench_;
  Runtime& runtime_;
  RandomRows random_;
  std::int64_t tokens_, flushed_tokens_;
  Tensor ids_, weights_, y_;
  std::uint64_t sum_ = 0;
};

}  // namespace

std::string too_large(const std::string& what, double bytes) {
  const auto available = static_cast<double>(available_bytes());
  if (available == 0 || 1.1 * bytes <= available) return {};
  const auto gibibytes = [](double count) { return std::round(count / 1073741824.0 * 10) / 10; };
  return text(what, " needs ", gibibytes(bytes), " GiB, of which the system has ", gibibytes(available));
}

void bench_product_key_reads(const ProductKeyBench& bench, Runtime& runtime, ProductKeyBenchResult& result) {
  const int threads = runtime.backend().threads();
  std::vector<int> counts{1};
  if (threads > 1) counts.push_back(threads);
  for (const std::int64_t slots : bench.slots) {
    const double bytes = static_cast<double>(slots) * static_cast<double>(bench.row_bytes());
    if (const std::string note = too_large(text("a table of ", slots, " slots"), bytes); !note.empty()) {
      result.skipped.push_back(note);
      continue;
    }
    ReadPasses passes(bench, slots, runtime);
    std::vector<ReadRun> runs;
    for (const int count : counts) {
      runs.push_back({.slots = slots,
                      .threads = count,
                      .tokens = passes.tokens(),
                      .flushed_tokens = passes.flushed_tokens(),
                      .kernel = {},
                      .flushed = {},
                      .plain = {},
                      .flushed_plain = {},
                      .in_order = {}});
    }
    {
      Tensor table({slots, bench.width}, bench.values, runtime.backend().device(), runtime.memory());
      kernels::fill(runtime.step(), table, kWeight);
      for (ReadRun& run : runs) {
        runtime.backend().set_threads(run.threads);
        passes.kernel(table, run);
      }
      runtime.backend().set_threads(threads);
    }
    const OrdinaryPages table(static_cast<std::size_t>(bytes));
    for (ReadRun& run : runs) passes.plain(table.data(), run);
    for (ReadRun& run : runs) result.reads.push_back(std::move(run));
  }
}

}  // namespace engram
