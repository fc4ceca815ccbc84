#pragma once
/// The rows of attention's backward pass: from scores, or from kept weights, to the weights with their dropout and to
/// the gradients of the scores.

#include <cmath>

#include "cpu/attention/attention_tile.hpp"
#include "cpu/dropout_bits.hpp"
#include "cpu/exponentials.hpp"

namespace engram::cpu {

/// One backward pass.
template <class T>
struct BackwardCall {
  const AttentionData<T>& data;
  RandomStream random;
  const T* out;
  const T* lse;
  const T* kept;  ///< weights that the forward pass kept; nullptr: none
  const T* dout;
  const AttentionGradients& gradients;
};

/// Buffers of a tile: two matrices [queries, row_length], two rows, and the tile's own rows of the queries and of the
/// output's gradient: products that read them along their columns are a quarter faster when they lie together (oneDNN
/// on a Zen 3, width 512). Slot tables that are not copied have matrices [queries, kSlotRun] instead.
template <class T>
struct Scratch {
  T *weights, *dscores, *multipliers, *corners, *query, *position_query, *dout, *totals;

  static std::int64_t columns(const AttentionPlan& plan) {
    return std::max(plan.scratch_columns,
                    plan.sizes.persistent > plan.slot_columns ? matrix_row_length(AttentionPlan::kSlotRun) : 0);
  }
  static std::int64_t size(const AttentionPlan& plan) {
    return (plan.scratch_tile + 1) * 2 * columns(plan) + plan.scratch_tile * (3 * plan.sizes.depth + 1);
  }
  Scratch(T* memory, const BackwardCall<T>& call, const AttentionTile<T>& tile) : weights(memory) {
    const AttentionSizes& s = call.data.plan.sizes;
    const std::int64_t row = columns(call.data.plan);
    dscores = weights + tile.queries * row;
    multipliers = dscores + tile.queries * row;
    corners = multipliers + row;
    query = corners + row;
    dout = query + tile.queries * s.depth;
    position_query = dout + tile.queries * s.depth;
    totals = position_query + tile.queries * s.depth;
    const auto copy = [&](const T* tensor, T* to) {
      copy_rows(tile.query_row(tensor, tile.first), s.width, tile.queries, s.depth, to, s.depth);
    };
    copy(call.data.content_query, query);
    copy(call.dout, dout);
    if (call.data.position_query == call.data.content_query)
      position_query = query;
    else
      copy(call.data.position_query, position_query);
    // What softmax takes off every gradient: the sum of weight times gradient, which is dout times out.
    for (std::int64_t i = 0; i < tile.queries; ++i)
      totals[i] = (vec(dout + i * s.depth, s.depth) * vec(tile.query_row(call.out, tile.first + i), s.depth)).sum();
  }
};

/// Numbers of the random elements of a query's row.
template <class T>
struct RandomElements {
  std::uint64_t context, slots;  // of place 0 of the band (it may lie before the row's first), of slot 0
  RandomElements(const BackwardCall<T>& call, const AttentionTile<T>& tile, std::int64_t m) {
    const AttentionSizes& s = call.data.plan.sizes;
    const std::uint64_t row = s.dropout_row(tile.stream, tile.head, m);
    context = row + static_cast<std::uint64_t>(call.data.options.max_distance - tile.head_plan.window);
    slots = row + static_cast<std::uint64_t>(s.dropout_reach);
  }
};

/// Part of a row: `weights` from scores to exp(score - lse), `multipliers` set when there is dropout. With `kept`, that
/// part of the kept row, both come from there.
template <class T>
void recall_weights(const BackwardCall<T>& call, const T* __restrict kept, T lse, std::uint64_t first_element,
                    std::int64_t count, T* __restrict weights, T* __restrict multipliers) {
  const DropoutRule& dropout = call.data.options.dropout;
  if (kept == nullptr) {
    exponentials(weights, count, lse);
    if (dropout.active()) dropout_multipliers(call.random, dropout, first_element, count, multipliers);
    return;
  }
  const auto multiplier = static_cast<T>(dropout.multiplier);
  for (std::int64_t j = 0; j < count; ++j) weights[j] = std::abs(kept[j]);
  if (!dropout.active()) return;
  for (std::int64_t j = 0; j < count; ++j) multipliers[j] = std::signbit(kept[j]) ? T(0) : multiplier;
}

/// Part of a row: weights -> times dropout (for the values' gradient), gradient of the weights -> of the scores.
template <class T>
void weight_gradients(const BackwardCall<T>& call, T* weights, T* dscores, std::int64_t count, T total,
                      const T* multipliers) {
  auto weight = vec(weights, count);
  auto gradient = vec(dscores, count);
  if (!call.data.options.dropout.active()) {
    gradient = weight * (gradient - total);
    return;
  }
  gradient = weight * (vec(multipliers, count) * gradient - total);
  weight *= vec(multipliers, count);
}

/// Both for a part whose mask is 1 everywhere. Kept weights are read once.
template <class T>
void part_gradients(const BackwardCall<T>& call, const T* __restrict kept, T lse, std::uint64_t first_element,
                    std::int64_t count, T total, T* __restrict weights, T* __restrict dscores, T* multipliers) {
  const DropoutRule& dropout = call.data.options.dropout;
  if (kept == nullptr || !dropout.active()) {
    recall_weights(call, kept, lse, first_element, count, weights, multipliers);
    weight_gradients(call, weights, dscores, count, total, multipliers);
    return;
  }
  const auto multiplier = static_cast<T>(dropout.multiplier);
  for (std::int64_t j = 0; j < count; ++j) {
    const T weight = std::abs(kept[j]), passed = std::signbit(kept[j]) ? T(0) : multiplier;
    dscores[j] = weight * (passed * dscores[j] - total);
    weights[j] = weight * passed;
  }
}

/// One row of the tile: `scratch.weights` from scores (or anything, when weights were kept) to weights times dropout,
/// `scratch.dscores` from gradients of the weights to those of the scores. Adds to dspan (nullptr: not wanted).
template <class T>
void backward_row(const BackwardCall<T>& call, const AttentionTile<T>& tile, std::int64_t i, const Scratch<T>& scratch,
                  double* dspan) {
  const VisibleRow row = tile.visible_row(i);
  const std::int64_t m = tile.first + i, low = row.low;
  const AttentionSizes& s = call.data.plan.sizes;
  const T lse = call.lse[(tile.stream * s.heads + tile.head) * s.block + m], total = scratch.totals[i];
  const RandomElements<T> elements(call, tile, m);
  const T* const kept = tile.kept_row(call.kept, i);
  const auto recall_context = [&](std::int64_t place, std::int64_t places, T* weights) {
    recall_weights(call, kept == nullptr ? nullptr : kept + s.persistent + place, lse,
                   elements.context + static_cast<std::uint64_t>(place), places, weights, scratch.multipliers);
  };
  if (tile.columns > 0 && low == tile.head_plan.slots && s.persistent == 0) {
    for (T* matrix : {scratch.weights, scratch.dscores}) tile.clear_outside(matrix, i, low);
    return;
  }

  T* const band_weights = scratch.weights + tile.band(i);
  T* const band_dscores = scratch.dscores + tile.band(i);
  // Before the scores are overwritten: dmask = exp(score - lse) (g - D), for the few slots on the ramp.
  const std::int64_t corner = row.corner, corners = row.corner_end - corner;
  if (dspan != nullptr && corners > 0) {
    auto share = vec(scratch.corners, corners), multipliers = vec(scratch.multipliers, corners);
    if (kept == nullptr) share = vec(band_weights + corner, corners).min(lse + kLargestCornerExponent<T>);
    if (!call.data.options.dropout.active()) multipliers.setOnes();
    recall_context(corner, corners, scratch.corners);
    if (kept != nullptr) share = share.min(std::exp(kLargestCornerExponent<T>));
    *dspan += static_cast<double>((share * (multipliers * vec(band_dscores + corner, corners) - total)).sum());
  }
  if (tile.columns > 0) {
    const std::int64_t full = std::clamp(row.full, low, tile.head_plan.slots);
    if (low < full) {
      recall_context(low, full - low, band_weights + low);
      tile.apply_mask(row, band_weights);
      weight_gradients(call, band_weights + low, band_dscores + low, full - low, total, scratch.multipliers);
    }
    part_gradients(call, kept == nullptr ? nullptr : kept + s.persistent + full, lse,
                   elements.context + static_cast<std::uint64_t>(full), tile.head_plan.slots - full, total,
                   band_weights + full, band_dscores + full, scratch.multipliers);
    for (T* matrix : {scratch.weights, scratch.dscores}) tile.clear_outside(matrix, i, low);
  }
  if (tile.slot_columns > 0) {
    part_gradients(call, kept, lse, elements.slots, tile.slot_columns, total, scratch.weights + i * tile.row_length,
                   scratch.dscores + i * tile.row_length, scratch.multipliers);
  }
}

}  // namespace engram::cpu
