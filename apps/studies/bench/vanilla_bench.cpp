#include "apps/studies/bench/vanilla_bench.hpp"

#include <algorithm>
#include <utility>

#include "apps/run/model/block_tensors.hpp"
#include "apps/studies/bench/bench_model.hpp"
#include "apps/studies/bench/median.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/stopwatch.hpp"
#include "nn/models/transformer_xl.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

constexpr std::int64_t kWarmUpPasses = 3;

struct TimedModel {
  TimedModel(const TransformerXlOptions& options, Runtime& runtime, std::uint64_t seed)
      : model(options), placed{model, runtime, DType::f32} {
    collect(model, store);
    store.place(runtime.backend(), placed.dtype, seed);
    model.refresh(runtime.backend());
  }
  TransformerXlModel model;
  Placed<TransformerXlModel> placed;
  ParameterStore store;
};

/// Forward passes over a block of random tokens, from tokens on the host to losses on the device.
class ForwardTimer {
 public:
  /// `scored`: how many of a row's last tokens have a loss.
  ForwardTimer(const Placed<TransformerXlModel>& placed, ModelPast past, std::int64_t streams, std::int64_t block,
               std::int64_t scored)
      : placed_(placed),
        past_(std::move(past)),
        block_(block),
        scored_(scored),
        inputs_(random_tokens(streams * block, placed.model.options().vocabulary, 0)),
        targets_(random_tokens(streams * scored, placed.model.options().vocabulary, 1)) {}

  /// Passes until the memory is full.
  void fill(std::int64_t memory) {
    for (std::int64_t seen = 0; seen < memory; seen += block_) run();
  }
  /// Seconds of one pass per scored token.
  double run() {
    const Stopwatch watch;
    placed_.runtime.in_step([&](Step& step) {
      const TokenBatch batch = input_.batch_of(
          {.inputs = inputs_, .targets = targets_, .length = block_, .context = block_ - scored_}, placed_);
      Tape tape(step, Tape::Mode::inference);
      const Variable hidden = LanguageModel::scored(placed_.model.hidden(tape, batch, past_), batch);
      placed_.model.tokens().losses(hidden, batch, 1);
      placed_.runtime.backend().synchronize();
    });
    const double seconds = watch.seconds();
    return seconds / static_cast<double>(targets_.size());
  }

 private:
  Placed<TransformerXlModel> placed_;
  ModelPast past_;
  std::int64_t block_, scored_;
  std::vector<std::int32_t> inputs_, targets_;
  BlockTensors input_;
};

void check(const VanillaBenchCase& bench, const std::vector<std::int64_t>& lengths) {
  const ModelOptions& model = bench.config.model;
  if (model.family != ModelFamily::transformer_xl)
    throw UsageError(text("bench: --against-vanilla is for models of the family transformer_xl, got ",
                          name_of(model.family), " in '", bench.name, "'"));
  if (model.transformer_xl.positions != PositionKind::relative)
    throw UsageError(text("bench: --against-vanilla needs model.positions relative, got ",
                          name_of(model.transformer_xl.positions), " in '", bench.name, "'"));
  if (model.transformer_xl.vocabulary < 1)
    throw UsageError(text("bench: '", bench.name, "' takes its vocabulary from the data\n  --vocab N gives one"));
  if (lengths.empty()) throw UsageError("bench: --lengths must have an attention length, got none");
  for (const std::int64_t length : lengths)
    if (length < 1) throw UsageError(text("bench: --lengths must be at least 1, got ", length));
}

}  // namespace

TransformerXlOptions vanilla_of(const TransformerXlOptions& model, std::int64_t longest) {
  TransformerXlOptions vanilla = model;
  vanilla.positions = PositionKind::absolute_learned;
  vanilla.position_rows = longest;
  vanilla.memory = 0;
  vanilla.visibility = Visibility::all;
  vanilla.memory_start = MemoryStart::empty;
  vanilla.clamp = 0;
  vanilla.check();
  return vanilla;
}

std::vector<VanillaComparison> bench_against_vanilla(const VanillaBenchCase& bench,
                                                     const std::vector<std::int64_t>& lengths, Runtime& runtime,
                                                     std::int64_t steps) {
  check(bench, lengths);
  const TransformerXlOptions& options = bench.config.model.transformer_xl;
  const std::int64_t streams = bench.config.training.batch;
  TimedModel vanilla(vanilla_of(options, *std::ranges::max_element(lengths)), runtime, bench.config.training.seed);
  TimedModel xl(options, runtime, bench.config.training.seed);
  std::vector<VanillaComparison> comparisons;
  for (const std::int64_t length : lengths) {
    SegmentContext context = xl.model.context();
    context.memory = length;
    xl.model.set_context(context);
    VanillaComparison comparison{.attention_length = length};
    std::vector<ForwardTimer> timers;
    timers.emplace_back(vanilla.placed, vanilla.placed.training_past(streams), streams, length, 1);
    for (const bool cached : {false, true})
      for (const std::int64_t segment : {length, kShortSegment}) {
        comparison.evaluations.push_back({.segment = segment, .cached = cached});
        ModelPast past = cached ? xl.placed.frozen_past(streams, segment) : xl.placed.training_past(streams);
        timers.emplace_back(xl.placed, std::move(past), streams, segment, segment);
        timers.back().fill(length);
      }
    for (std::int64_t pass = 0; pass < kWarmUpPasses; ++pass)
      for (ForwardTimer& timer : timers) timer.run();
    std::vector<std::vector<double>> seconds(timers.size());
    for (std::int64_t pass = 0; pass < steps; ++pass)  // alternating, so that all see the same machine
      for (std::size_t i = 0; i < timers.size(); ++i) seconds[i].push_back(timers[i].run());
    comparison.vanilla_seconds = median_of(seconds.front());
    for (std::size_t i = 0; i < comparison.evaluations.size(); ++i)
      comparison.evaluations[i].seconds = median_of(seconds[i + 1]);
    comparisons.push_back(std::move(comparison));
  }
  return comparisons;
}

}  // namespace engram
