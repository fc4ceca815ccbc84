#include "tests/reference/product_key_memory.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace engram::reference {
namespace {

using Indices = std::vector<std::int64_t>;

/// Numbers of the elements, largest first, equal ones by number.
Indices falling(const std::vector<double>& numbers) {
  Indices order(numbers.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
    return numbers[static_cast<std::size_t>(a)] > numbers[static_cast<std::size_t>(b)];
  });
  return order;
}

/// Where each element stands in that order.
Indices ranks_of(const std::vector<double>& numbers) {
  const Indices order = falling(numbers);
  Indices ranks(order.size());
  for (std::size_t place = 0; place < order.size(); ++place)
    ranks[static_cast<std::size_t>(order[place])] = static_cast<std::int64_t>(place);
  return ranks;
}

struct Slot {
  double score;
  Indices ranks;  // of its sub-keys in their sets
  std::int64_t id;
};

/// All slots of one query, best first.
std::vector<Slot> sorted_slots(const std::vector<std::vector<double>>& half_scores) {
  const auto n = static_cast<std::int64_t>(half_scores[0].size());
  std::vector<Indices> ranks;
  std::int64_t slots = 1;
  for (const auto& set : half_scores) {
    ranks.push_back(ranks_of(set));
    slots *= n;
  }
  std::vector<Slot> all;
  for (std::int64_t id = 0; id < slots; ++id) {
    Indices parts(half_scores.size());
    std::int64_t rest = id;
    for (std::size_t f = parts.size(); f-- > 0; rest /= n) parts[f] = rest % n;
    Slot slot{half_scores[0][static_cast<std::size_t>(parts[0])], {}, id};
    for (std::size_t f = 1; f < parts.size(); ++f) slot.score += half_scores[f][static_cast<std::size_t>(parts[f])];
    for (std::size_t f = 0; f < parts.size(); ++f) slot.ranks.push_back(ranks[f][static_cast<std::size_t>(parts[f])]);
    all.push_back(std::move(slot));
  }
  std::ranges::sort(
      all, [](const Slot& a, const Slot& b) { return a.score != b.score ? a.score > b.score : a.ranks < b.ranks; });
  return all;
}

}  // namespace

MemoryRead product_key_memory(const Array64& queries, const Array64& keys, const Array64& values, std::int64_t k) {
  const std::int64_t rows = queries.axis(0), heads = keys.axis(0), sets = keys.axis(1), n = keys.axis(2);
  const std::int64_t part = keys.axis(3), width = values.axis(1);
  MemoryRead read{zeros({rows, width}), zeros({rows, heads, k}), zeros({rows, heads, k}), zeros({rows, heads, k})};
  const auto at = [](std::int64_t place) { return static_cast<std::size_t>(place); };
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::vector<std::vector<double>> half_scores(at(sets), std::vector<double>(at(n)));
      for (std::int64_t f = 0; f < sets; ++f)
        for (std::int64_t i = 0; i < n; ++i)
          for (std::int64_t c = 0; c < part; ++c)
            half_scores[at(f)][at(i)] += queries.data[at(((r * heads + h) * sets + f) * part + c)] *
                                         keys.data[at(((h * sets + f) * n + i) * part + c)];
      const std::vector<Slot> slots = sorted_slots(half_scores);
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j) sum += std::exp(slots[at(j)].score - slots[0].score);
      for (std::int64_t j = 0; j < k; ++j) {
        const Slot& slot = slots[at(j)];
        const double weight = std::exp(slot.score - slots[0].score) / sum;
        const std::size_t place = at((r * heads + h) * k + j);
        read.ids.data[place] = static_cast<double>(slot.id);
        read.scores.data[place] = slot.score;
        read.weights.data[place] = weight;
        for (std::int64_t c = 0; c < width; ++c)
          read.y.data[at(r * width + c)] += weight * values.data[at(slot.id * width + c)];
      }
    }
  }
  return read;
}

Array64 batch_norm_of_rows(const Array64& x, const Array64& gain, const Array64& bias, double epsilon) {
  const std::int64_t rows = x.axis(0), columns = x.axis(1);
  Array64 y = x;
  for (std::int64_t c = 0; c < columns; ++c) {
    double mean = 0, variance = 0;
    for (std::int64_t r = 0; r < rows; ++r) mean += x.data[static_cast<std::size_t>(r * columns + c)];
    mean /= static_cast<double>(rows);
    for (std::int64_t r = 0; r < rows; ++r)
      variance += std::pow(x.data[static_cast<std::size_t>(r * columns + c)] - mean, 2);
    variance /= static_cast<double>(rows);
    const double scale = gain.data[static_cast<std::size_t>(c)] / std::sqrt(variance + epsilon);
    for (std::int64_t r = 0; r < rows; ++r) {
      double& value = y.data[static_cast<std::size_t>(r * columns + c)];
      value = (value - mean) * scale + bias.data[static_cast<std::size_t>(c)];
    }
  }
  return y;
}

}  // namespace engram::reference
