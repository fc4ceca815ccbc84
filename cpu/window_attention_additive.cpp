#include "core/kernels/window_attention_additive.hpp"

#include "cpu/ordered_sum.hpp"
#include "cpu/parallel.hpp"
#include "cpu/tanh_of_sums.hpp"
#include "cpu/window_softmax.hpp"
#include "cpu/zero_if_set.hpp"

namespace engram::cpu {
namespace {

/// Positions of one item of work: a whole stream of a training step, and enough that the rows before an item's, whose
/// exponentials are made again, are few.
constexpr std::int64_t kTile = 64;

/// The block of one stream in tiles of nearly equal length.
struct Tiles {
  std::int64_t block, count, length;

  explicit Tiles(std::int64_t positions)
      : block(positions),
        count(std::max<std::int64_t>(1, (positions + kTile - 1) / kTile)),
        length((positions + count - 1) / count) {}
  std::int64_t begin(std::int64_t tile) const { return std::min(block, tile * length); }
  std::int64_t end(std::int64_t tile) const { return begin(tile + 1); }
  /// The most rows that a tile sees.
  std::int64_t most_rows(const WindowRule& rule) const { return std::min(rule.rows(), length + rule.window); }
};

/// The arguments of both kernels.
template <class T>
struct Additive {
  const T* keys;
  const T* queries;
  const T* vector;
  const std::int32_t* preceding;
  WindowRule rule;
  std::int64_t streams, width, padded;
  Tiles tiles;

  Additive(const Tensor& key_rows, const Tensor& query_rows, const Tensor& score_vector, const Tensor& before,
           const WindowRule& window_rule)
      : keys(key_rows.data<const T>()),
        queries(query_rows.data<const T>()),
        vector(score_vector.data<const T>()),
        preceding(before.data<const std::int32_t>()),
        rule(window_rule),
        streams(key_rows.shape()[0]),
        width(key_rows.shape()[2]),
        padded(padded_width<T>(width)),
        tiles(window_rule.block) {}

  const T* key(std::int64_t b, std::int64_t row) const { return keys + (b * rule.rows() + row) * width; }
  const T* query(std::int64_t b, std::int64_t t) const { return queries + (b * rule.block + t) * width; }
  std::int64_t seen(std::int64_t b, std::int64_t t) const { return rule.seen(t, preceding[b * rule.block + t]); }
};

/// Exponentials of consecutive keys of one stream, of a query, and of their sums where they are too large for that; in
/// the scratch memory of a thread.
template <class T>
class Exponentials {
 public:
  static std::int64_t elements(const Additive<T>& in) {
    return (in.tiles.most_rows(in.rule) + 3) * in.padded + in.tiles.most_rows(in.rule);
  }
  Exponentials(const Additive<T>& in, T* memory)
      : in_(in),
        keys_(memory),
        query_(keys_ + in.tiles.most_rows(in.rule) * in.padded),
        sum_(query_ + in.padded),
        ones_(sum_ + in.padded),
        moderate_(ones_ + in.padded) {
    std::fill_n(ones_, in.padded, T(1));
  }

  void take_keys(std::int64_t b, std::int64_t begin, std::int64_t end) {
    stream_ = b;
    first_ = begin;
    for (std::int64_t row = begin; row < end; ++row)
      moderate_[row - begin] = doubled_exponentials(in_.key(b, row), in_.width, key(row), in_.padded) ? T(1) : T(0);
  }
  void take_query(std::int64_t t) {
    position_ = t;
    query_is_moderate_ = doubled_exponentials(in_.query(stream_, t), in_.width, query_, in_.padded);
  }

  /// Of the exponentials of a row, and of what else is kept for the same rows.
  std::int64_t place(std::int64_t row) const { return (row - first_) * in_.padded; }
  T* key(std::int64_t row) const { return keys_ + place(row); }
  const T* query() const { return query_; }
  const T* ones() const { return ones_; }
  bool moderate(std::int64_t row) const { return query_is_moderate_ && moderate_[row - first_] != 0; }
  bool all_moderate(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t row = begin; row < end; ++row)
      if (!moderate(row)) return false;
    return true;
  }
  /// Of the sum of a key and the query; it stands beside ones().
  const T* sum_with(std::int64_t row) const {
    doubled_exponentials_of_sum(in_.key(stream_, row), in_.query(stream_, position_), in_.width, sum_, in_.padded);
    return sum_;
  }

 private:
  const Additive<T>& in_;
  T *keys_, *query_, *sum_, *ones_, *moderate_;
  std::int64_t stream_ = 0, first_ = 0, position_ = 0;
  bool query_is_moderate_ = true;
};

/// The score vector times `factor`, zeros behind it.
template <class T>
void scaled_vector(const Additive<T>& in, T factor, T* to) {
  for (std::int64_t i = 0; i < in.width; ++i) to[i] = factor * in.vector[i];
  std::fill(to + in.width, to + in.padded, T(0));
}

template <class T>
void position_weights(const Additive<T>& in, Exponentials<T>& exponentials, const T* doubled_vector, std::int64_t b,
                      std::int64_t t, T* weights) {
  const std::int64_t seen = in.seen(b, t), window = in.rule.window, end = in.rule.end(t);
  const std::int64_t counted = counted_columns(in.rule, seen);
  if (counted > 0) exponentials.take_query(t);
  for (std::int64_t row = end - seen; row < end; ++row)
    weights[in.rule.column(t, row)] =
        exponentials.moderate(row)
            ? half_tanh_score(exponentials.key(row), exponentials.query(), doubled_vector, in.padded)
            : half_tanh_score(exponentials.sum_with(row), exponentials.ones(), doubled_vector, in.padded);
  if (counted > seen)
    std::fill_n(weights, counted - seen,
                half_tanh_score(exponentials.ones(), exponentials.query(), doubled_vector, in.padded));
  window_softmax(weights, window, counted);
}

/// The weights of a window of one: whatever its score, 1.
template <class T>
void only_weights(const Tensor& preceding, const WindowRule& rule, T* weights) {
  const std::int32_t* const before = preceding.data<const std::int32_t>();
  for (std::int64_t place = 0; place < preceding.count(); ++place)
    weights[place] = counted_columns(rule, rule.seen(place % rule.block, before[place])) > 0 ? T(1) : T(0);
}

void window_additive_weights(Step& step, const Tensor& keys, const Tensor& queries, const Tensor& score_vector,
                             const Tensor& preceding, const WindowRule& rule, Tensor& weights) {
  dispatch_float(weights.dtype(), "window_attention_additive", [&]<class T>() {
    if (rule.window == 1) {
      if (step.computes()) only_weights(preceding, rule, weights.data<T>());
      return;
    }
    const Additive<T> in(keys, queries, score_vector, preceding, rule);
    const std::int64_t per_thread = Exponentials<T>::elements(in);
    const Workspace memory =
        step.workspace(static_cast<std::size_t>(in.padded + per_thread * max_threads()) * sizeof(T));
    if (!step.computes()) return;
    T* const doubled_vector = memory.data<T>();
    scaled_vector(in, T(2), doubled_vector);
    T* const result = weights.data<T>();
    parallel_items_on_threads(in.streams * in.tiles.count, [&](std::int64_t item, int thread) {
      const std::int64_t b = item / in.tiles.count, tile = item % in.tiles.count;
      const std::int64_t begin = in.tiles.begin(tile), end = in.tiles.end(tile);
      if (begin == end) return;
      Exponentials<T> exponentials(in, doubled_vector + in.padded + thread * per_thread);
      exponentials.take_keys(b, std::max<std::int64_t>(0, rule.end(begin) - rule.window), rule.end(end - 1));
      for (std::int64_t t = begin; t < end; ++t)
        position_weights(in, exponentials, doubled_vector, b, t, result + (b * rule.block + t) * rule.window);
    });
  });
}

/// Sums of one tile's gradients, beside the exponentials.
template <class T>
struct TileSums {
  T *keys, *query, *vector, *unused;  // [rows, padded], then [padded]

  static std::int64_t elements(const Additive<T>& in) { return (in.tiles.most_rows(in.rule) + 3) * in.padded; }
  TileSums(const Additive<T>& in, T* memory)
      : keys(memory),
        query(keys + in.tiles.most_rows(in.rule) * in.padded),
        vector(query + in.padded),
        unused(vector + in.padded) {
    std::fill_n(memory, elements(in), T(0));
  }
};

/// Adds the gradients of the pairs of position t and the rows from `begin` to before `end`, all of which it sees.
/// dscores: of position t. dvector: where the score vector's share goes.
template <class T>
void add_pairs(const Additive<T>& in, const Exponentials<T>& exponentials, std::int64_t t, std::int64_t begin,
               std::int64_t end, const T* dscores, TileSums<T>& sums, T* dvector) {
  if (begin >= end) return;
  if (exponentials.all_moderate(begin, end)) {
    add_tanh_gradients(exponentials.key(begin), exponentials.query(), dscores + in.rule.column(t, begin), end - begin,
                       sums.keys + exponentials.place(begin), sums.query, dvector, in.padded);
    return;
  }
  for (std::int64_t row = begin; row < end; ++row)
    add_tanh_gradients(exponentials.sum_with(row), exponentials.ones(), dscores + in.rule.column(t, row), 1,
                       sums.keys + exponentials.place(row), sums.query, dvector, in.padded);
}

/// Place `row` of a target [rows, width] (set or add) = factors[i] sums[i].
template <class T>
void write_scaled(const T* factors, const T* sums, std::int64_t width, const TargetElements<T>& target,
                  std::int64_t row) {
  T* const to = target.data + row * width;
  if (target.write == Write::add)
    for (std::int64_t i = 0; i < width; ++i) to[i] += factors[i] * sums[i];
  else
    for (std::int64_t i = 0; i < width; ++i) to[i] = factors[i] * sums[i];
}

/// Where the gradients of one call go.
template <class T>
struct AdditiveResults {
  TargetElements<T> keys, queries;
  T* partial_vectors;  // [items, width]
};

/// The gradients of a tile's positions, and of the keys that are its own: the block's rows beside its positions; the
/// first tile has the carried ones too. Those keys are seen by later positions, whose share is computed here again.
template <class T>
void tile_gradients(const Additive<T>& in, const T* dscores, const T* factors, std::int64_t item, T* scratch,
                    const AdditiveResults<T>& results) {
  const WindowRule& rule = in.rule;
  const std::int64_t b = item / in.tiles.count, tile = item % in.tiles.count;
  const std::int64_t begin = in.tiles.begin(tile), end = in.tiles.end(tile);
  const std::int64_t first_own = tile == 0 ? 0 : rule.carried + begin, end_own = rule.carried + end;
  const std::int64_t first_seen = std::clamp<std::int64_t>(rule.end(begin) - rule.window, 0, end_own);
  Exponentials<T> exponentials(in, scratch);
  TileSums<T> sums(in, scratch + Exponentials<T>::elements(in));
  exponentials.take_keys(b, first_seen, end_own);
  const std::int64_t readers = begin < end ? std::max(end, rule.end_of_readers(end_own - 1)) : end;
  for (std::int64_t t = begin; t < readers; ++t) {
    const bool own = t < end;
    const std::int64_t seen = in.seen(b, t), newest = rule.end(t);
    const T* const row = dscores + (b * rule.block + t) * rule.window;
    const std::int64_t oldest = own ? newest - seen : std::max(newest - seen, first_own);
    if (!own && oldest >= end_own) continue;
    exponentials.take_query(t);
    add_pairs(in, exponentials, t, oldest, std::min(newest, end_own), row, sums, own ? sums.vector : sums.unused);
    if (!own) continue;
    if (rule.count_missing && seen < rule.window) {
      const T missing = static_cast<T>(rule.window - seen) * row[0];  // all of them have the same
      add_tanh_gradients(exponentials.ones(), exponentials.query(), &missing, 1, sums.unused, sums.query, sums.vector,
                         in.padded);
    }
    if (results.queries.data != nullptr)
      write_scaled(factors, sums.query, in.width, results.queries, b * rule.block + t);
    std::fill_n(sums.query, in.padded, T(0));
  }
  vec(results.partial_vectors + item * in.width, in.width) = T(2) * vec(sums.vector, in.width);
  if (results.keys.data == nullptr) return;
  T* const keys = results.keys.data + b * rule.rows() * in.width;
  if (results.keys.write == Write::set && first_own < first_seen)
    std::fill(keys + first_own * in.width, keys + first_seen * in.width, T(0));
  for (std::int64_t j = std::max(first_own, first_seen); j < end_own; ++j)
    write_scaled(factors, sums.keys + exponentials.place(j), in.width, results.keys, b * rule.rows() + j);
}

void window_additive_gradients(Step& step, const Tensor& keys, const Tensor& queries, const Tensor& score_vector,
                               const Tensor& dscores, const Tensor& preceding, const WindowRule& rule,
                               const AdditiveScoreGradients& gradients) {
  dispatch_float(dscores.dtype(), "window_attention_additive", [&]<class T>() {
    if (rule.window == 1) {  // the only weight is 1, and its score has no gradient
      if (!step.computes()) return;
      for (const Target* target : {&gradients.keys, &gradients.queries, &gradients.score_vector})
        zero_if_set<T>(*target);
      return;
    }
    const Additive<T> in(keys, queries, score_vector, preceding, rule);
    const std::int64_t items = in.streams * in.tiles.count;
    const std::int64_t per_thread = Exponentials<T>::elements(in) + TileSums<T>::elements(in);
    const Workspace memory =
        step.workspace(static_cast<std::size_t>(in.padded + items * in.width + per_thread * max_threads()) * sizeof(T));
    if (!step.computes()) return;
    T* const factors = memory.data<T>();
    T* const scratch = factors + in.padded;
    T* const partial = scratch + per_thread * max_threads();
    scaled_vector(in, T(4), factors);
    const AdditiveResults<T> results{gradients.keys, gradients.queries, partial};
    const T* const of_scores = dscores.data<const T>();
    parallel_items_on_threads(items, [&](std::int64_t item, int thread) {
      tile_gradients(in, of_scores, factors, item, scratch + thread * per_thread, results);
    });
    if (gradients.score_vector)
      add_partial_rows(partial, items, in.width, in.width, gradients.score_vector.data<T>(),
                       gradients.score_vector.write);
  });
}

const bool bound =
    kernels::window_additive_weights.bind(DeviceKind::cpu, &window_additive_weights, KernelMemory::workspace) &&
    kernels::window_additive_gradients.bind(DeviceKind::cpu, &window_additive_gradients, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
