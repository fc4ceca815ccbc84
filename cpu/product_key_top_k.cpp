#include "core/kernels/product_key_top_k.hpp"

#include <cstddef>

#include "core/rules/score_order.hpp"
#include "cpu/parallel.hpp"
#include "cpu/top_scores.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

constexpr std::int64_t kMostSets = 3;

std::size_t in_lines(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// The ranks of all candidates, set by set: [sets, count].
struct RankTuples {
  std::int64_t count;
  std::int32_t* ranks;

  void fill(int sets, std::int64_t length, std::int64_t k) {
    std::int64_t at = 0;
    for (std::int64_t p = 0; p < length; ++p)
      for_each_rank_after(sets, length, k, p, [&](std::int64_t q, std::int64_t r) {
        const std::int64_t tuple[kMostSets] = {p, q, r};
        for (int set = 0; set < sets; ++set) ranks[set * count + at] = static_cast<std::int32_t>(tuple[set]);
        ++at;
      });
  }
};

/// What one thread needs to select: the sorted list of every set, the candidates' sums, and the best of them.
template <class T>
struct Selector {
  static std::size_t bytes(int sets, std::int64_t length, std::int64_t k, std::int64_t candidates) {
    return in_lines(TopScores<T>::bytes(k)) + in_lines(static_cast<std::size_t>(sets * length) * sizeof(T)) +
           in_lines(static_cast<std::size_t>(candidates) * sizeof(T)) +
           in_lines(static_cast<std::size_t>(sets * length + k) * sizeof(std::int32_t));
  }
  Selector(std::byte* memory, int set_count, std::int64_t list_length, std::int64_t most, const RankTuples& candidates)
      : sets(set_count),
        length(list_length),
        k(most),
        tuples(candidates),
        top(memory, most),
        list(reinterpret_cast<T*>(memory + in_lines(TopScores<T>::bytes(most)))),
        sums(reinterpret_cast<T*>(reinterpret_cast<std::byte*>(list) +
                                  in_lines(static_cast<std::size_t>(sets * length) * sizeof(T)))),
        places(reinterpret_cast<std::int32_t*>(reinterpret_cast<std::byte*>(sums) +
                                               in_lines(static_cast<std::size_t>(tuples.count) * sizeof(T)))),
        best(places + sets * length) {}

  /// One row of one head. half_scores: [sets, n]; `more`: as many lie behind them, and are next.
  void select(const T* half_scores, bool more, std::int64_t n, T* scores, std::int64_t* ids) {
    for (int set = 0; set < sets; ++set) {
      const T* const of_set = half_scores + set * n;
      std::int32_t* const sorted = places + set * length;
      top.select(of_set, n, length, sorted, more || set + 1 < sets ? of_set + n : nullptr);
      for (std::int64_t p = 0; p < length; ++p) list[set * length + p] = of_set[sorted[p]];
    }
    if (sets == 1) {
      std::copy_n(list, k, scores);
      std::copy_n(places, k, ids);
      return;
    }
    for (std::int64_t i = 0; i < tuples.count; ++i) sums[i] = list[tuples.ranks[i]];
    for (int set = 1; set < sets; ++set) {
      const std::int32_t* const ranks = tuples.ranks + set * tuples.count;
      const T* const of_set = list + set * length;
      for (std::int64_t i = 0; i < tuples.count; ++i) sums[i] += of_set[ranks[i]];
    }
    // The candidates are in ascending order of their ranks, so equal sums are in the right order.
    top.select(sums, tuples.count, k, best);
    for (std::int64_t j = 0; j < k; ++j) {
      scores[j] = sums[best[j]];
      std::int64_t id = 0;
      for (int set = 0; set < sets; ++set)
        id = id * n + places[set * length + tuples.ranks[set * tuples.count + best[j]]];
      ids[j] = id;
    }
  }

  int sets;
  std::int64_t length, k;
  RankTuples tuples;
  TopScores<T> top;
  T *list, *sums;
  std::int32_t *places, *best;
};

void product_key_select(Step& step, const Tensor& half_scores, Tensor& scores, Tensor& ids) {
  dispatch_float(half_scores.dtype(), "product_key_select", [&]<class T>() {
    const Shape& shape = half_scores.shape();
    const std::int64_t rows = shape[0] * shape[1], n = shape[3], k = scores.shape()[2];
    const int sets = static_cast<int>(shape[2]);
    const std::int64_t length = std::min(k, n), candidates = count_rank_tuples(sets, length, k);
    const Workspace of_tuples = step.workspace(static_cast<std::size_t>(sets * candidates) * sizeof(std::int32_t));
    RankTuples tuples{candidates, of_tuples.data<std::int32_t>()};
    const std::size_t bytes = Selector<T>::bytes(sets, length, k, candidates);
    const Workspace scratch = step.workspace(bytes * static_cast<std::size_t>(max_threads()));
    if (!step.computes()) return;
    tuples.fill(sets, length, k);
    const std::int64_t chunk = row_chunk(sets * n);
    const T* in = half_scores.data<const T>();
    T* out = scores.data<T>();
    std::int64_t* out_ids = ids.data<std::int64_t>();
    parallel_items_on_threads((rows + chunk - 1) / chunk, [&](std::int64_t item, int thread) {
      Selector<T> selector(scratch.data<std::byte>() + bytes * static_cast<std::size_t>(thread), sets, length, k,
                           tuples);
      const std::int64_t end = std::min(rows, (item + 1) * chunk);
      for (std::int64_t r = item * chunk; r < end; ++r)
        selector.select(in + r * sets * n, r + 1 < end, n, out + r * k, out_ids + r * k);
    });
  });
}

void product_key_scatter(Step&, const Tensor& dscores, const Tensor& ids, Tensor& dhalf_scores) {
  dispatch_float(dscores.dtype(), "product_key_scatter", [&]<class T>() {
    const Shape& shape = dhalf_scores.shape();
    const std::int64_t sets = shape[2], n = shape[3], k = ids.shape()[2];
    const T* gradient = dscores.data<const T>();
    const std::int64_t* slots = ids.data<const std::int64_t>();
    T* out = dhalf_scores.data<T>();
    parallel_chunks(shape[0] * shape[1], row_chunk(sets * n), [&](std::int64_t begin, std::int64_t end) {
      vec(out + begin * sets * n, (end - begin) * sets * n) = T(0);
      for (std::int64_t j = begin * k; j < end * k; ++j) {
        std::int64_t id = slots[j];
        for (std::int64_t set = sets; set-- > 0; id /= n) out[(j / k * sets + set) * n + id % n] += gradient[j];
      }
    });
  });
}

const bool bound = kernels::product_key_select.bind(DeviceKind::cpu, &product_key_select, KernelMemory::workspace) &&
                   kernels::product_key_scatter.bind(DeviceKind::cpu, &product_key_scatter);

}  // namespace
}  // namespace engram::cpu
