#include "apps/studies/context/relative_context.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace engram {
namespace {

void check(const ContextLosses& table) {
  if (table.lengths.size() < 2 || !std::ranges::is_sorted(table.lengths))
    throw Error(text("relative context: there must be two or more increasing lengths, got ", table.lengths.size()));
  if (table.losses.empty()) throw Error("relative context: there must be models, got none");
  const std::size_t positions = table.losses.front().empty() ? 0 : table.losses.front().front().size();
  if (positions == 0) throw Error("relative context: there must be positions, got none");
  for (const auto& model : table.losses) {
    if (model.size() != table.lengths.size())
      throw Error(text("relative context: every model must have losses for ", table.lengths.size(), " lengths, got ",
                       model.size()));
    for (const auto& losses : model)
      if (losses.size() != positions)
        throw Error(
            text("relative context: there must be ", positions, " losses for every length, got ", losses.size()));
  }
}

/// b(c, t) for all t.
std::vector<double> best_losses(const ContextLosses& table, std::size_t length) {
  std::vector<double> best(table.losses.front()[length].size(), std::numeric_limits<double>::infinity());
  for (const auto& model : table.losses)
    for (std::size_t t = 0; t < best.size(); ++t) best[t] = std::min(best[t], model[length][t]);
  return best;
}

std::vector<std::size_t> hardest(const std::vector<double>& best, double share) {
  if (!(share > 0 && share <= 1))
    throw UsageError(text("relative context: a share of positions must be above 0 and at most 1, got ", share));
  // r n in floating point may lie a rounding above a whole number: 0.1 * 30.
  constexpr double kRounding = 1e-9;
  const auto positions = static_cast<double>(best.size());
  const auto count = static_cast<std::ptrdiff_t>(std::max(1.0, std::ceil(share * positions - kRounding)));
  std::vector<std::size_t> order(best.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&best](std::size_t a, std::size_t b) { return best[a] > best[b]; });
  order.resize(static_cast<std::size_t>(count));
  std::ranges::sort(order);
  return order;
}

}  // namespace

std::vector<std::size_t> hard_positions(const ContextLosses& table, std::size_t length, double share) {
  check(table);
  return hardest(best_losses(table, length), share);
}

double relative_loss(const ContextLosses& table, std::size_t model, std::size_t from, std::size_t to, double share) {
  check(table);
  const std::vector<double> best = best_losses(table, from);
  const std::vector<std::size_t> positions = hardest(best, share);
  double sum = 0;
  for (const std::size_t t : positions) sum += std::min(best[t], table.losses[model][to][t]);
  return sum / static_cast<double>(positions.size());
}

std::vector<RelativeContext> relative_contexts(const ContextLosses& table, double share, double threshold) {
  check(table);
  std::vector<RelativeContext> contexts(table.losses.size());
  for (std::size_t model = 0; model < contexts.size(); ++model) {
    RelativeContext& context = contexts[model];
    for (std::size_t from = 0; from + 1 < table.lengths.size(); ++from) {
      // From 0, so that no gain is not -0.
      context.gains.push_back(0 - std::expm1(relative_loss(table, model, from, from + 1, share) -
                                             relative_loss(table, model, from, from, share)));
      if (context.is_reached) continue;
      context.is_reached = context.gains.back() < threshold;
      context.length = table.lengths[context.is_reached ? from : from + 1];
    }
  }
  return contexts;
}

}  // namespace engram
