#include "apps/studies/attention/attention_study.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "apps/studies/attention/traced_reading.hpp"
#include "core/error.hpp"
#include "core/host_copy.hpp"
#include "core/rules/span_mask.hpp"

namespace engram {
std::int64_t AttentionStudy::slot_heads() const {
  const AllAttentionOptions& options = placed_.model.options();
  switch (options.memory_mode) {
    case MemoryMode::attn_split:
      return options.heads;
    case MemoryMode::head_split:
      return options.heads - options.context_heads();
    case MemoryMode::single_head:
    case MemoryMode::ff_attn:
      return 1;
    default:
      return 0;
  }
}

AttentionStudy::AttentionStudy(const Placed<AllAttentionModel>& placed, const StudiedHead& studied)
    : placed_(placed), studied_(studied) {
  const AllAttentionOptions& options = placed.model.options();
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    for (std::int64_t head = 0; head < options.context_heads(); ++head)
      heads_.push_back(
          {.layer = layer, .head = head, .sees_context = true, .sees_slots = options.memory_mode == MemoryMode::all});
    for (std::int64_t head = 0; head < slot_heads(); ++head)
      heads_.push_back({.layer = layer, .head = head, .sees_context = false, .sees_slots = true});
  }
  const auto require = [](std::string_view what, std::int64_t given, std::int64_t count) {
    if (given < 0 || given >= count)
      throw UsageError(count == 0 ? text("attention: the model has no such ", what)
                                  : text("attention: the ", what, " must be from 0 to ", count - 1, ", got ", given));
  };
  require("layer", studied.layer, options.layers);
  require(studied.of_slots ? "head that sees slots only" : "head", studied.head,
          studied.of_slots ? slot_heads() : options.context_heads());
}

bool AttentionStudy::is_studied(const HeadAttention& head) const {
  return head.layer == studied_.layer && head.head == studied_.head && head.sees_context != studied_.of_slots;
}

void AttentionStudy::read(const std::vector<std::int32_t>& tokens, std::int64_t block, const EvaluationWatch& watch) {
  read_traced(placed_, tokens, {.block = block}, [&](const ModelTrace& trace, std::int64_t first, std::int64_t count) {
    take(trace, first, count);
    if (watch) watch(first + count, std::ssize(tokens));
  });
}

void AttentionStudy::take(const ModelTrace& trace, std::int64_t first, std::int64_t queries) {
  const AllAttentionOptions& options = placed_.model.options();
  const std::int64_t per_layer = options.context_heads() + slot_heads();
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    const AttentionTrace& made = trace.layers[static_cast<std::size_t>(layer)];
    const auto first_head = static_cast<std::size_t>(layer * per_layer);
    const bool joint = options.memory_mode == MemoryMode::all;
    take_call({made.seen.kept, &made.context, made.span ? made.span.value() : Tensor(), options.context_heads(),
               joint ? options.slots : 0, queries},
              first_head, first);
    if (slot_heads() == 0) continue;
    const std::int64_t slots = options.memory_mode == MemoryMode::ff_attn ? options.inner : options.slots;
    take_call({made.slots.kept, nullptr, Tensor(), slot_heads(), slots, queries},
              first_head + static_cast<std::size_t>(options.context_heads()), first);
  }
  queries_ += queries;
}

void AttentionStudy::take_call(const Call& call, std::size_t first_head, std::int64_t first) {
  const std::vector<double> kept = host_doubles(placed_.runtime.backend(), call.kept);
  const std::vector<double> zeta = host_doubles(placed_.runtime.backend(), call.span);
  const bool per_query = std::ssize(zeta) != call.heads;
  auto at = kept.begin();
  for (std::int64_t head = 0; head < call.heads; ++head) {
    const std::int64_t window =
        call.options == nullptr ? 0 : call.options->windows.window[static_cast<std::size_t>(head)];
    for (std::int64_t query = 0; query < call.queries; ++query) {
      AttentionRow row{.position = first + query, .context = {}, .slots = {at, at + call.slots}};
      at += call.slots;
      row.context.resize(static_cast<std::size_t>(window));
      for (std::int64_t distance = window; distance >= 1; --distance) {
        double mask = 1;
        if (!zeta.empty()) {
          const std::int64_t place = per_query ? query * call.heads + head : head;
          mask = span_mask(zeta[static_cast<std::size_t>(place)] * call.options->max_distance,
                           static_cast<double>(distance - 1 + call.options->mask_offset),
                           static_cast<double>(call.options->ramp));
        }
        row.context[static_cast<std::size_t>(distance - 1)] = mask * *at++;
      }
      HeadAttention& sums = heads_[first_head + static_cast<std::size_t>(head)];
      take_row(sums, is_studied(sums), std::move(row));
    }
  }
}

void AttentionStudy::take_row(HeadAttention& head, bool is_studied, AttentionRow row) {
  double on_slots = 0, on_context = 0, distance = 0;
  const auto information = [](double weight) { return weight > 0 ? -weight * std::log2(weight) : 0; };
  for (const double weight : row.slots) {
    on_slots += weight;
    head.entropy += information(weight);
  }
  for (std::size_t i = 0; i < row.context.size(); ++i) {
    const double weight = row.context[i];
    on_context += weight;
    distance += weight * static_cast<double>(i + 1);
    head.entropy += information(weight);
    if (static_cast<std::int64_t>(i) >= row.position) head.padding_share += weight;
  }
  head.slot_share += on_slots;
  if (on_context > 0) {
    head.distance += distance / on_context;
    ++head.with_context;
  }
  if (row_found_) row_found_(head, row);
  if (!is_studied) return;
  slots_.resize(row.slots.size());
  for (std::size_t n = 0; n < row.slots.size(); ++n) {
    SlotUse& use = slots_[n];
    use.slot = static_cast<std::int64_t>(n);
    use.share += row.slots[n];
    // Insertion into a short list that is sorted already; of equal weights the earlier token stays in front.
    const auto place = std::ranges::upper_bound(use.hits, row.slots[n], std::greater<>(), &SlotHit::weight);
    if (place - use.hits.begin() >= studied_.hits) continue;
    use.hits.insert(place, {row.position, row.slots[n]});
    if (std::ssize(use.hits) > studied_.hits) use.hits.pop_back();
  }
  rows_.push_back(std::move(row));
  if (std::ssize(rows_) > studied_.rows) rows_.pop_front();
}

std::vector<HeadAttention> AttentionStudy::heads() const {
  std::vector<HeadAttention> means = heads_;
  const auto queries = static_cast<double>(std::max<std::int64_t>(1, queries_));
  for (HeadAttention& head : means) {
    for (double* sum : {&head.slot_share, &head.padding_share, &head.entropy}) *sum /= queries;
    head.distance /= static_cast<double>(std::max<std::int64_t>(1, head.with_context));
  }
  return means;
}

std::vector<SlotUse> AttentionStudy::slots(std::size_t most) const {
  std::vector<SlotUse> sorted = slots_;
  std::ranges::stable_sort(sorted, std::greater<>(), &SlotUse::share);
  sorted.resize(std::min(most, sorted.size()));
  for (SlotUse& use : sorted) use.share /= static_cast<double>(std::max<std::int64_t>(1, queries_));
  return sorted;
}

}  // namespace engram
