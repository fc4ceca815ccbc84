#include "nn/layers/auxiliary_heads.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/functions/linear_cross_entropy.hpp"
#include "autograd/functions/reshape.hpp"
#include "autograd/functions/slice.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/scope.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

/// `weight` for each of `rows` targets from `first` on that counts; `without_last`: 0 for the last of every stream of
/// `length` of them.
Tensor target_weights(Step& step, const TokenBatch& batch, std::int64_t first, std::int64_t rows, std::int64_t length,
                      bool without_last, DType dtype, double weight) {
  Tensor weights = step.empty({rows}, dtype);
  if (batch.scored)
    kernels::accumulate(step, batch.scored.rows(first, first + rows), weight, {weights, Write::set});
  else
    kernels::fill(step, weights, weight);
  const std::int64_t ends = without_last ? rows / length : 0;
  if (ends > 0) {
    Tensor zeros = step.empty({ends}, dtype);
    kernels::fill(step, zeros, 0);
    kernels::copy_runs(step, zeros, {0, 1}, {weights, Write::set}, {length - 1, length}, ends, 1);
  }
  return weights;
}

/// The loss of rows [R, D] by a classifier of their targets.
Variable classified(Linear& head, const Variable& rows, const Tensor& targets, const Tensor& weights,
                    std::int64_t vocabulary) {
  constexpr std::int64_t kLogitsBytes = std::int64_t{256} << 20;
  Tape& tape = rows.tape();
  const std::int64_t at_once = std::max<std::int64_t>(1, kLogitsBytes / (vocabulary * 4));
  return linear_cross_entropy(rows, head.weight(tape), head.bias(tape), targets, weights, at_once).loss;
}

}  // namespace

AuxiliaryHeads::AuxiliaryHeads(const AuxiliaryOptions& options) : options_(options) {
  const auto head = [&] { return std::make_unique<Linear>(options.width, options.vocabulary, options.start); };
  const std::int64_t intermediate = options.intermediate ? options.layers - 1 : 0;
  for (std::int64_t layer = 0; layer < intermediate; ++layer) next_.push_back(head());
  for (std::int64_t layer = 0; options.second_target > 0 && layer <= intermediate; ++layer) second_.push_back(head());
}

std::int64_t AuxiliaryHeads::first_layer(double progress) const {
  const std::int64_t last = options_.layers - 1;
  if (!options_.intermediate) return last;
  return std::min(last, static_cast<std::int64_t>(std::floor(2 * static_cast<double>(options_.layers) * progress)));
}

std::int64_t AuxiliaryHeads::count(double progress) const {
  const std::int64_t layers = options_.layers - 1 - first_layer(progress);
  return layers + (options_.second_target > 0 ? layers + 1 : 0);
}

std::pmr::vector<Variable> AuxiliaryHeads::losses(std::span<const Variable> states, const Variable& last,
                                                  const TokenBatch& batch, double row_weight, double progress) {
  const Scope scope("auxiliary");
  Step& step = last.tape().step();
  const std::int64_t rows = last.shape().rows(), length = last.shape()[1];
  const DType dtype = compute_dtype(last.dtype());
  std::pmr::vector<Variable> all(step.objects());
  const std::int64_t first = first_layer(progress), end = options_.layers - 1;
  const Tensor next_weights =
      first < end ? target_weights(step, batch, 0, rows, length, false, dtype, row_weight) : Tensor();
  const bool second = options_.second_target > 0 && rows > 1;
  const Tensor second_weights =
      second ? target_weights(step, batch, 1, rows - 1, length, true, dtype, options_.second_target * row_weight)
             : Tensor();
  for (std::int64_t layer = first; layer <= end; ++layer) {
    const Variable& state = layer == end ? last : states[static_cast<std::size_t>(layer)];
    const Variable flat = reshape(state, {rows, options_.width});
    if (layer < end)
      all.push_back(
          classified(*next_[static_cast<std::size_t>(layer)], flat, batch.targets, next_weights, options_.vocabulary));
    // Of every position the second target is the next position's first one.
    if (second)
      all.push_back(classified(options_.intermediate ? *second_[static_cast<std::size_t>(layer)] : *second_.front(),
                               slice(flat, 0, 0, rows - 1), batch.targets.rows(1, rows), second_weights,
                               options_.vocabulary));
  }
  return all;
}

void AuxiliaryHeads::visit(Visitor& visit) {
  if (!next_.empty()) visit("next", next_);
  if (!second_.empty()) visit("second", second_);
}

}  // namespace engram
