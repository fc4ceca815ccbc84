#include "apps/bench/training_bench.hpp"

#include <algorithm>
#include <chrono>
#include <memory>

#include "apps/bench/resident_memory.hpp"
#include "apps/training/trainer.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/models/all_attention.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

constexpr std::int64_t kWarmUpSteps = 2;

/// The zeta with which a head sees so many positions.
double zeta_of(std::int64_t positions, const AllAttentionOptions& model) {
  if (positions == model.max_span) return 1;
  if (positions < model.ramp || positions > model.max_span)
    throw UsageError(text("bench: a span must be from ramp = ", model.ramp, " to max_span = ", model.max_span,
                          " positions, got ", positions));
  return static_cast<double>(positions - model.ramp) / static_cast<double>(model.max_span);
}

/// The trainer at work, with random tokens in the place of data.
class Rehearsal {
 public:
  Rehearsal(const BenchCase& bench, Runtime& runtime)
      : config_(bench.config), runtime_(runtime), model_(config_.model) {
    config_.schedule.rate = 0;
    collect(model_, store_);
    store_.place(runtime.backend(), DType::f32, config_.training.seed);
    set_spans(bench.spans);
    trainer_ = std::make_unique<Trainer>(config_, model_, store_, runtime);
    block_.rows = static_cast<int>(config_.training.batch);
    block_.length = static_cast<int>(config_.training.block);
    block_.scored_count = config_.training.batch * config_.training.block;
    block_.scored.assign(static_cast<std::size_t>(block_.scored_count), 1);
    block_.inputs = random_tokens(0);
    block_.targets = random_tokens(1);
  }

  void fill_caches() {
    Step& step = runtime_.step();
    const std::int64_t streams = config_.training.batch / config_.training.split;
    for (std::int64_t seen = 0; seen < config_.model.max_span; seen += config_.training.block) {
      for (ModelPast& past : trainer_->pasts()) {
        step.begin({});
        Tape tape(step, Tape::Mode::inference);
        const Tensor tokens = step.empty({streams, config_.training.block}, DType::i32);
        runtime_.backend().copy(tokens.raw(), block_.inputs.data(), tokens.bytes(), CopyKind::host_to_device);
        model_.forward(tape, tokens, past);
      }
      runtime_.arena().end_step();
    }
  }

  void train(KernelObserver* observer) {
    runtime_.step().observe(observer);
    trainer_->step(block_);
    runtime_.backend().synchronize();
    runtime_.step().observe(nullptr);
  }

  double mean_window() const {
    double sum = 0;
    for (std::int64_t layer = 0; layer < config_.model.layers; ++layer)
      for (const std::int64_t reach : model_.span(layer).reach()) sum += static_cast<double>(reach);
    return sum / static_cast<double>(config_.model.layers * config_.model.heads);
  }
  std::int64_t parameters() const { return store_.count(); }
  std::size_t arena_bytes() const { return runtime_.arena().peak_bytes(); }
  std::size_t parameter_bytes() const {
    std::size_t bytes = 0;
    for (const ParameterGroup& group : store_.groups())
      bytes += group.values.bytes() * static_cast<std::size_t>(values_per_parameter(config_.optimizer.kind));
    return bytes;
  }

 private:
  void set_spans(const std::vector<std::int64_t>& spans) {
    const AllAttentionOptions& options = config_.model;
    const auto heads = static_cast<std::size_t>(options.heads);
    if (!options.adaptive_span) {
      if (!spans.empty()) throw UsageError("bench: spans can be set only where model.adaptive_span is true");
      return;
    }
    if (spans.size() > 1 && spans.size() != heads)
      throw UsageError(text("bench: spans must be one number or one per head (", heads, "), got ", spans.size()));
    std::vector<float> zeta(heads);
    for (std::size_t head = 0; head < heads; ++head) {
      const std::int64_t positions = spans.empty() ? options.max_span : spans[spans.size() == 1 ? 0 : head];
      zeta[head] = static_cast<float>(zeta_of(positions, options));
    }
    for (std::int64_t layer = 0; layer < options.layers; ++layer) {
      const Parameter* span = store_.find(text("layers.", layer, ".attention.span"));
      runtime_.backend().copy(span->value().raw(), zeta.data(), span->value().bytes(), CopyKind::host_to_device);
    }
    model_.refresh_spans(runtime_.backend());
  }

  /// So simple that other programs can be timed on the same tokens.
  std::vector<std::int32_t> random_tokens(std::uint32_t which) const {
    constexpr std::uint32_t kHashMultiplier = 2654435761;  // 2^32 over the golden ratio (Knuth)
    std::vector<std::int32_t> ids(static_cast<std::size_t>(block_.scored_count));
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto mixed = static_cast<std::uint32_t>(i + which * 0x10001) * kHashMultiplier;
      ids[i] = static_cast<std::int32_t>((mixed >> 7) % static_cast<std::uint32_t>(config_.model.vocabulary));
    }
    return ids;
  }

  RunConfig config_;
  Runtime& runtime_;
  AllAttentionModel model_;
  ParameterStore store_;
  std::unique_ptr<Trainer> trainer_;
  data::Block block_;
};

}  // namespace

double BenchResult::attention_seconds() const {
  double sum = 0;
  for (const auto& [name, total] : kernels.totals())
    if (name.starts_with("attention_") || name.starts_with("project_past_")) sum += total.seconds;
  return sum / static_cast<double>(seconds.size());
}

double BenchResult::kernel_flops(std::string_view kernel) const {
  const double per_token = kernel == "matmul"                  ? flops.products
                           : kernel == "attention_forward"     ? flops.attention_forward
                           : kernel == "attention_backward"    ? flops.attention_backward
                           : kernel == "project_past_forward"  ? flops.past_forward
                           : kernel == "project_past_backward" ? flops.past_backward
                                                               : 0;
  return per_token * static_cast<double>(tokens);
}

double BenchResult::kernel_exponentials(std::string_view kernel) const {
  const double per_token = kernel == "attention_forward" || kernel == "attention_backward" ? attention_exponentials
                           : kernel == "cross_entropy" ? static_cast<double>(vocabulary)
                                                       : 0;
  return per_token * static_cast<double>(tokens);
}

double BenchResult::kernel_floor(std::string_view kernel, const MachineLimits& limits) const {
  const auto entry = kernels.totals().find(kernel);
  const double bytes = entry == kernels.totals().end() ? 0 : entry->second.bytes / static_cast<double>(seconds.size());
  return std::max({kernel_flops(kernel) / limits.flops_per_second,
                   kernel_exponentials(kernel) / limits.exponentials_per_second, bytes / limits.bytes_per_second});
}

BenchResult bench_training(const BenchCase& bench, const MachineLimits& limits, Runtime& runtime, std::int64_t steps) {
  if (bench.config.model.vocabulary < 1)
    throw UsageError(text("bench: '", bench.name, "' takes its vocabulary from the data\n  --vocab N gives one"));
  reset_peak_resident_bytes();
  Rehearsal rehearsal(bench, runtime);
  rehearsal.fill_caches();
  for (std::int64_t step = 0; step < kWarmUpSteps; ++step) rehearsal.train(nullptr);
  BenchResult result;
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    rehearsal.train(&result.kernels);
    result.seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(result.seconds);

  const RunConfig& config = bench.config;
  const CostSetting setting{rehearsal.mean_window(), config.training.block, config.training.batch};
  result.mean_window = setting.window;
  result.tokens = config.training.batch * config.training.block;
  result.flops = training_flops(config.model, setting);
  result.attention_exponentials = training_exponentials(config.model, setting.window) / 2;
  result.vocabulary = config.model.vocabulary;
  result.parameters = rehearsal.parameters();
  result.parameter_bytes = rehearsal.parameter_bytes();
  result.arena_bytes = rehearsal.arena_bytes();
  result.resident_bytes = peak_resident_bytes();
  const auto tokens = static_cast<double>(result.tokens);
  result.least_seconds = std::max(
      {result.flops.total() * tokens / limits.flops_per_second,
       training_exponentials(config.model, setting.window) * tokens / limits.exponentials_per_second,
       training_bytes(config.model, setting, config.optimizer.kind, result.parameters) / limits.bytes_per_second});
  return result;
}

}  // namespace engram
