#include "apps/commands/bench_ways.hpp"

#include <algorithm>
#include <array>

#include "apps/commands/output.hpp"
#include "apps/studies/bench/bench_report.hpp"
#include "apps/studies/bench/softmax_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// The released word model; the softmax over all of its vocabulary has fewer tokens, because every one of them has
/// 267,735 logits.
SoftmaxBench softmax_case(const BenchOptions& shared) {
  SoftmaxBench bench;
  bench.model.vocabulary = shared.vocabulary != 0 ? shared.vocabulary : 267'735;
  bench.model.width = 512;
  constexpr std::array<std::int64_t, 3> kCutoffs{20'000, 40'000, 200'000};
  bench.model.cutoffs = VocabularyClusters::fitting(kCutoffs, bench.model.vocabulary, bench.model.width);
  if (bench.model.cutoffs.empty())
    throw UsageError(text("bench: --softmax needs a vocabulary for several clusters, got ", bench.model.vocabulary));
  bench.tokens = shared.tokens != 0 ? shared.tokens : 4096;
  bench.full_tokens = std::min<std::int64_t>(bench.tokens, 512);
  return bench;
}

}  // namespace

void bench_softmax(const BenchOptions& shared) {
  const SoftmaxBench bench = softmax_case(shared);
  const Device device = parse_device(shared.device);
  const ProductPrecision products = shared.dtype == "bf16" ? ProductPrecision::bf16 : ProductPrecision::f32;
  WorkProgress progress("measuring the machine");
  const MachineLimits machine = measure_limits(Runtime(device, shared.threads).backend(), shared.product_size);
  if (!shared.json) print_report(table_of(machine));
  progress.begin("timing input and output of a word model");
  Runtime runtime(device, shared.threads);
  runtime.step().set_products(products);
  const SoftmaxResult result = bench_softmax(bench, runtime, shared.steps);
  progress.end();
  const MachineLimits limits = machine.with(products);
  if (shared.json)
    print_json({{"machine", json_of(machine)}, {"device", text(device)}, {"softmax", json_of(bench, result, limits)}});
  else
    print_report(table_of(bench, result, limits));
}

}  // namespace engram
