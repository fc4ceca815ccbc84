#include "apps/studies/bench/softmax_bench.hpp"

#include <algorithm>
#include <memory>
#include <span>

#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/cost/cluster_shares.hpp"
#include "apps/studies/bench/token_ends.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/matmul.hpp"
#include "nn/layers/token_io.hpp"

namespace engram {
namespace {

constexpr std::uint64_t kSoftmaxSeed = 1;
constexpr int kSoftmaxWarmUpSteps = 2;

std::unique_ptr<TokenIo> ends_of(const AllAttentionOptions& model) {
  return make_token_io({.vocabulary = model.vocabulary,
                        .width = model.width,
                        .cutoffs = model.cutoffs,
                        .tie_tables = model.tie_tables,
                        .tie_projections = model.tie_projections});
}

/// FLOPs per second of a large product.
double product_rate(Runtime& runtime) {
  constexpr std::int64_t kSide = 2000;  // not a power of two: see measure_limits
  const double seconds = runtime.in_step([&](Step& step) {
    Tensor a = step.empty({kSide, kSide}, DType::f32), b = step.empty({kSide, kSide}, DType::f32);
    Tensor c = step.empty({kSide, kSide}, DType::f32);
    kernels::fill(step, a, 0.5);
    kernels::fill(step, b, 0.25);
    return seconds_of(runtime, [&] {
      using kernels::Transpose;
      kernels::matmul(step, MatrixView::of(a), Transpose::no, MatrixView::of(b), Transpose::no, MatrixView::of(c), 1,
                      1.0, Write::set);
    });
  });
  return 2.0 * kSide * kSide * kSide / seconds;
}

SoftmaxRun time_ends(const AllAttentionOptions& model, std::int64_t tokens, Runtime& runtime, std::int64_t steps) {
  SoftmaxRun run(runtime.backend());
  const std::unique_ptr<TokenIo> io = ends_of(model);
  TokenEnds ends(*io, runtime);
  const std::vector<std::int32_t> words = ranked_tokens(tokens + 1, model.vocabulary, kSoftmaxSeed);
  ends.take(words);
  run.tokens = tokens;
  if (!model.cutoffs.empty())
    run.cluster_shares = counted_shares(model.cutoffs, data::TokenView(std::span(words).subspan(1)));
  run.flops = 3 * (input_flops(model, run.cluster_shares) + output_flops(model, run.cluster_shares));
  for (int i = 0; i < kSoftmaxWarmUpSteps; ++i) ends.train();
  double before = product_rate(runtime);
  for (std::int64_t i = 0; i < steps; ++i) {
    run.seconds.push_back(ends.train());
    const double after = product_rate(runtime);
    const double rate = 2 / (1 / before + 1 / after);  // of both products together
    run.times_floor.push_back(run.seconds.back() * rate / (run.flops * static_cast<double>(tokens)));
    before = after;
  }
  std::ranges::sort(run.seconds);
  std::ranges::sort(run.times_floor);
  runtime.step().observe(&run.kernels);
  for (std::int64_t i = 0; i < steps; ++i) ends.train();
  runtime.step().observe(nullptr);
  return run;
}

AllAttentionOptions without_clusters(AllAttentionOptions model) {
  model.cutoffs.clear();
  return model;
}

}  // namespace

SoftmaxResult bench_softmax(const SoftmaxBench& bench, Runtime& runtime, std::int64_t steps) {
  SoftmaxRun adaptive = time_ends(bench.model, bench.tokens, runtime, steps);
  return {std::move(adaptive), time_ends(without_clusters(bench.model), bench.full_tokens, runtime, steps)};
}

}  // namespace engram
