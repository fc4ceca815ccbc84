#include "apps/studies/bench/softmax_bench.hpp"

#include <algorithm>

#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/matmul.hpp"
#include "core/stopwatch.hpp"
#include "nn/layers/token_io.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

constexpr std::uint64_t kSoftmaxSeed = 1;
constexpr int kSoftmaxWarmUpSteps = 2;

/// Both ends, placed, and a block for them.
class Ends final : public Module {
 public:
  Ends(const AllAttentionOptions& model, std::int64_t tokens, Runtime& runtime)
      : io_(make_token_io({.vocabulary = model.vocabulary,
                           .width = model.width,
                           .cutoffs = model.cutoffs,
                           .tie_tables = model.tie_tables,
                           .tie_projections = model.tie_projections})),
        runtime_(runtime),
        words_(ranked_tokens(tokens + 1, model.vocabulary, kSoftmaxSeed)) {
    collect(*this, store_);
    store_.place(runtime.backend(), DType::f32, kSoftmaxSeed);
    const std::span<const std::int32_t> words(words_);
    block_.write({.inputs = words.first(words.size() - 1), .targets = words.subspan(1), .length = tokens}, 1,
                 io_->clusters(), runtime.backend(), runtime.memory());
    if (!model.cutoffs.empty()) shares_ = counted_shares(model.cutoffs, data::TokenView(words.subspan(1)));
  }
  void visit(Visitor& visit) override {
    visit("embedding", io_->input());
    visit("output", io_->output());
  }
  const std::vector<double>& shares() const { return shares_; }

  /// Seconds of one step.
  double train() {
    return runtime_.in_step([this](Step& step) { return timed([&] { train_once(step); }); });
  }
  /// FLOPs per second of a large product.
  double product_rate() {
    constexpr std::int64_t kSide = 2000;  // not a power of two: see measure_limits
    const double seconds = runtime_.in_step([this](Step& step) {
      Tensor a = step.empty({kSide, kSide}, DType::f32), b = step.empty({kSide, kSide}, DType::f32);
      Tensor c = step.empty({kSide, kSide}, DType::f32);
      kernels::fill(step, a, 0.5);
      kernels::fill(step, b, 0.25);
      return timed([&] {
        using kernels::Transpose;
        kernels::matmul(step, MatrixView::of(a), Transpose::no, MatrixView::of(b), Transpose::no, MatrixView::of(c), 1,
                        1.0, Write::set);
      });
    });
    return 2.0 * kSide * kSide * kSide / seconds;
  }

 private:
  template <class Action>
  double timed(const Action& action) {
    runtime_.backend().synchronize();
    const Stopwatch watch;
    action();
    runtime_.backend().synchronize();
    return watch.seconds();
  }
  void train_once(Step& step) {
    store_.zero_gradients(step);
    Tape tape(step);
    const TokenBatch batch = block_.piece(0);
    std::pmr::vector<Variable> losses(step.objects());
    const double row_weight = 1.0 / static_cast<double>(batch.inputs.count());
    for (LossPart& part : io_->losses(io_->embed(tape, batch), batch, row_weight))
      losses.push_back(std::move(part.loss));
    tape.backward(losses);
  }

  std::unique_ptr<TokenIo> io_;
  Runtime& runtime_;
  std::vector<std::int32_t> words_;
  ParameterStore store_;
  BlockTensors block_;
  std::vector<double> shares_;
};

SoftmaxRun time_ends(const AllAttentionOptions& model, std::int64_t tokens, Runtime& runtime, std::int64_t steps) {
  SoftmaxRun run(runtime.backend());
  Ends ends(model, tokens, runtime);
  run.tokens = tokens;
  run.cluster_shares = ends.shares();
  run.flops = 3 * (input_flops(model, run.cluster_shares) + output_flops(model, run.cluster_shares));
  for (int i = 0; i < kSoftmaxWarmUpSteps; ++i) ends.train();
  double before = ends.product_rate();
  for (std::int64_t i = 0; i < steps; ++i) {
    run.seconds.push_back(ends.train());
    const double after = ends.product_rate();
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
