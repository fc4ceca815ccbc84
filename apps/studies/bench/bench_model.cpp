#include "apps/studies/bench/bench_model.hpp"

#include <utility>

#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/cost/product_key_cost.hpp"
#include "apps/run/cost/recurrent_cost.hpp"
#include "apps/run/cost/transformer_xl_cost.hpp"
#include "apps/run/training/step_memory.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

/// The zeta with which a head sees so many positions.
double zeta_of(std::int64_t positions, const AllAttentionOptions& model) {
  if (positions == model.max_span) return 1;
  if (positions < model.ramp || positions > model.max_span)
    throw UsageError(text("bench: a span must be from ramp = ", model.ramp, " to max_span = ", model.max_span,
                          " positions, got ", positions));
  return static_cast<double>(positions - model.ramp) / static_cast<double>(model.max_span);
}

void set_spans(const std::vector<std::int64_t>& spans, const AllAttentionOptions& options, Backend& backend,
               AllAttentionModel& model, const ParameterStore& store) {
  const auto heads = static_cast<std::size_t>(options.heads);
  if (options.span != SpanKind::adaptive) {
    if (!spans.empty()) throw UsageError("bench: spans can be set only where model.span is adaptive");
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
    const Parameter* span = store.find(text("layers.", layer, ".attention.span"));
    backend.copy(span->value().raw(), zeta.data(), span->value().bytes(), CopyKind::host_to_device);
  }
  model.refresh(backend);
}

const RunConfig& with_vocabulary(const BenchCase& bench) {
  if (bench.config.model.vocabulary() < 1)
    throw UsageError(text("bench: '", bench.name, "' takes its vocabulary from the data\n  --vocab N gives one"));
  return bench.config;
}

/// Positions that a head sees, over all layers and heads.
double mean_window(const AllAttentionModel& model) {
  const AllAttentionOptions& options = model.options();
  // Of queries that have spans of their own all positions are computed.
  if (options.span == SpanKind::dynamic) return static_cast<double>(options.max_span);
  double sum = 0;
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    for (const std::int64_t reach : model.span(layer).reach()) sum += static_cast<double>(reach);
  return sum / static_cast<double>(options.layers * options.context_heads());
}

}  // namespace

BenchModel::BenchModel(const BenchCase& bench, Backend& backend, Communicator* ranks, For use)
    : config(with_vocabulary(bench)), model(make_model(config.model)) {
  collect(*model, store);
  if (use == For::inference)
    for (const auto& [name, parameter] : store.parameters()) store.freeze(name);
  store.place(backend, DType::f32, config.training.seed, {}, ranks);
  if (AllAttentionModel* const spanned = all_attention_of(*model))
    set_spans(bench.spans, config.model.all_attention, backend, *spanned, store);
  else if (!bench.spans.empty())
    require_all_attention(config.model, "bench: spans");
}

StepCost BenchModel::cost(std::int64_t block, int ranks) const {
  StepSetting setting{.block = block,
                      .extension = config.training.extension,
                      .batch = config.training.batch / ranks,
                      .window = 0,
                      .optimizer = config.optimizer.kind,
                      .parameters = store.count(),
                      .tables = config.optimizer.tables};
  if (const AllAttentionModel* const spanned = all_attention_of(std::as_const(*model)))
    setting.window = mean_window(*spanned);
  return with_own_options(config.model, [&](const auto& own) { return step_cost(own, setting); });
}

std::int64_t BenchModel::longest_past() const { return engram::longest_past(config.model); }

std::vector<std::int32_t> bench_tokens(std::int64_t count, const ModelOptions& model, std::uint32_t which) {
  if (model.cutoffs().empty()) return random_tokens(count, model.vocabulary(), which);
  return ranked_tokens(count, model.vocabulary(), which);
}

std::vector<std::int32_t> random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint32_t which) {
  constexpr std::uint32_t kHashMultiplier = 2654435761;  // 2^32 over the golden ratio (Knuth)
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto mixed = static_cast<std::uint32_t>(i + which * 0x10001) * kHashMultiplier;
    ids[i] = static_cast<std::int32_t>((mixed >> 7) % static_cast<std::uint32_t>(vocabulary));
  }
  return ids;
}

}  // namespace engram
