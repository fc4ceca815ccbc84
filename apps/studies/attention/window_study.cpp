#include "apps/studies/attention/window_study.hpp"

#include <algorithm>
#include <cmath>

#include "apps/run/model/block_tensors.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/host_copy.hpp"

namespace engram {

WindowMeans::WindowMeans(std::int64_t window, std::int64_t newest)
    : sums_(static_cast<std::size_t>(window)), newest_(newest) {}

void WindowMeans::add(std::span<const double> weights) {
  if (weights.size() != sums_.size())
    throw Error(text("attention study: a row must have ", sums_.size(), " weights, got ", weights.size()));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sums_[i] += weights[i];
    if (weights[i] > 0) entropy_ -= weights[i] * std::log(weights[i]);
  }
  ++positions_;
}

std::vector<double> WindowMeans::weights() const {
  std::vector<double> means = sums_;
  for (double& sum : means) sum /= static_cast<double>(positions_);
  return means;
}

double WindowMeans::mean_offset() const {
  double sum = 0;
  for (std::int64_t column = 0; column < window(); ++column)
    sum += sums_[static_cast<std::size_t>(column)] * static_cast<double>(offset(column));
  return sum / static_cast<double>(positions_);
}

double WindowMeans::newest_share(std::int64_t columns) const {
  double sum = 0;
  for (std::int64_t column = std::max<std::int64_t>(0, window() - columns); column < window(); ++column)
    sum += sums_[static_cast<std::size_t>(column)];
  return sum / static_cast<double>(positions_);
}

void WindowStudy::check(const RecurrentOptions& options) {
  if (!options.attends() && options.readout != ReadoutKind::recurrent_memory)
    throw UsageError(text("attention: model.readout must be attention, key_value, key_value_predict or ",
                          "recurrent_memory, which have weights to show, got ", name_of(options.readout)));
}

WindowStudy::WindowStudy(const Placed<RecurrentModel>& placed, Rows rows)
    : placed_(placed), wanted_(rows), means_(placed.model.options().window, sees_itself() ? 0 : -1) {
  check(placed.model.options());
}

void WindowStudy::read(data::EvaluationPlan& plan, std::int64_t streams) {
  ModelPast past = placed_.frozen_past(streams, plan.longest_block());
  data::Block block;
  plan.begin();
  while (plan.next(block)) {
    if (block.zero_caches)
      for (const auto& part : past) part->reset();
    read_block(block, past);
  }
}

void WindowStudy::read(std::span<const std::int32_t> tokens, std::int64_t block, const EvaluationWatch& watch) {
  ModelPast past = placed_.frozen_past(1, block);
  data::Block piece;
  piece.rows = 1;
  for (std::size_t first = 0; first < tokens.size(); first += static_cast<std::size_t>(block)) {
    const std::span<const std::int32_t> part =
        tokens.subspan(first, std::min(static_cast<std::size_t>(block), tokens.size() - first));
    piece.first = static_cast<std::int64_t>(first);
    piece.length = static_cast<int>(part.size());
    piece.inputs.assign(part.begin(), part.end());
    piece.scored.assign(part.size(), 1);
    piece.scored_count = std::ssize(part);
    read_block(piece, past);
    if (watch) watch(piece.first + piece.length, std::ssize(tokens));
  }
}

void WindowStudy::read_block(const data::Block& block, ModelPast& past) {
  const std::int64_t before = recurrent_past(*past.front()).valid();
  BlockTensors input;
  const std::vector<double> weights = placed_.runtime.in_step([&](Step& step) {
    const TokenBatch batch = input.batch_of(tokens_of(block), placed_);
    Tape tape(step, Tape::Mode::inference);
    ModelTrace trace(step.objects());
    trace.keep_window_weights = true;
    placed_.model.hidden(tape, batch, past, &trace);
    std::vector<double> found = host_doubles(placed_.runtime.backend(), trace.window_weights);
    step.wrong_ids().check();
    return found;
  });
  take(block, weights, before);
}

void WindowStudy::take(const data::Block& block, std::span<const double> weights, std::int64_t before) {
  const std::int64_t window = means_.window(), itself = sees_itself() ? 1 : 0;
  for (std::int64_t i = 0; i < std::ssize(block.inputs); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (block.scored[at] == 0) continue;
    ++positions_;
    const std::int64_t position = block.preceding.empty() ? before + i % block.length : block.preceding[at];
    const std::int64_t seen = std::min(window, position + itself);
    const std::span<const double> row =
        weights.subspan(static_cast<std::size_t>(i * window), static_cast<std::size_t>(window));
    if (seen == window) means_.add(row);
    // Articles know where their targets are, other blocks where their inputs are.
    const std::int64_t place = block.places.empty() ? block.place_of(i) - 1 : block.places[at];
    if (place >= wanted_.first && place < wanted_.first + wanted_.count)
      kept_.push_back({.position = position,
                       .token = block.inputs[at],
                       .seen = seen,
                       .weights = std::vector<double>(row.begin(), row.end())});
  }
}

}  // namespace engram
