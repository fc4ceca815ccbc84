/// The logits lie transposed, [V, rows], a vector holding one symbol's logits of neighbouring rows: so the weight is
/// read where it lies by both products that need it, and maxima and sums of rows are those of vectors. A block of rows
/// goes over the vocabulary twice, a tile of it at a time that stays in the second cache: first logits, their
/// exponentials and sums; then the softmax, and at once all gradients of the tile. PanelProducts multiply, or, with
/// bf16 operands where the processor has instructions for them, PackedProducts.

#include "core/kernels/linear_cross_entropy.hpp"

#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "cpu/exponentials.hpp"
#include "cpu/large_softmax/packed_products.hpp"
#include "cpu/large_softmax/panel_products.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

/// The vocabulary is cut into so many parts at most, each with sums of its own, whatever the number of threads.
constexpr std::int64_t kMostParts = 32;

constexpr std::int64_t pieces(std::int64_t count, std::int64_t piece) { return (count + piece - 1) / piece; }

template <class T>
class Softmax {
 public:
  using Vector = typename detail::ExponentialLanes<T>::Vector;
  static constexpr std::int64_t kLanes = SoftmaxTile<T>::kLanes, kTile = SoftmaxTile<T>::kSymbols;

  Softmax(Step& step, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
          const Tensor& row_weight, std::int64_t rows, const LinearCrossEntropyGradients& gradients)
      : gradients_(gradients),
        count_(x.shape().rows()),
        width_(weight.shape()[1]),
        padded_width_(whole(width_)),
        vocabulary_(weight.shape()[0]),
        block_rows_(std::min(whole(count_), std::max(kLanes, rows / kLanes * kLanes))),
        tiles_(pieces(vocabulary_, kTile)),
        part_tiles_(pieces(tiles_, kMostParts)),
        parts_(pieces(tiles_, part_tiles_)),
        x_(x.data<const T>()),
        weight_(weight.data<const T>()),
        bias_(bias.data<const T>()),
        targets_(targets.data<const std::int32_t>()),
        row_weight_(row_weight.data<const T>()),
        memory_(step.workspace(static_cast<std::size_t>(all_sizes()) * sizeof(T))) {
    T* next = memory_.template data<T>();
    const auto take = [&next](std::int64_t size) { return std::exchange(next, next + size); };
    logits_ = take(vocabulary_ * block_rows_);
    maxima_ = take(tiles_ * block_rows_);
    part_maxima_ = take(parts_ * block_rows_);
    part_sums_ = take(parts_ * block_rows_);
    chosen_ = take(block_rows_);
    largest_ = take(block_rows_);
    scale_ = take(block_rows_);
    subtracted_ = take(block_rows_);
    partial_dx_ = take(gradients_.dx ? parts_ * block_rows_ * padded_width_ : 0);
    if (std::is_same_v<T, float> && step.products() == ProductPrecision::bf16 && multiplies_bf16())
      packed_.emplace(step, block_rows_, width_, max_threads());
    else
      panels_.emplace(step, block_rows_, width_, max_threads());
  }

  void run(T* row_loss) {
    for (first_ = 0; first_ < count_; first_ += block_rows_) {
      rows_ = std::min(block_rows_, count_ - first_);
      lanes_ = whole(rows_);
      with_products([&](auto& products) { products.take_rows(x_ + first_ * width_, rows_); });
      parallel_items_on_threads(parts_, [&](std::int64_t part, int thread) { add_up(part, thread); });
      finish_rows(row_loss);
      if (!gradients_) continue;
      parallel_items_on_threads(parts_, [&](std::int64_t part, int thread) { make_gradients(part, thread); });
      if (gradients_.dx) add_partial_dx();
    }
  }

 private:
  static constexpr std::int64_t whole(std::int64_t count) { return pieces(count, kLanes) * kLanes; }
  std::int64_t all_sizes() const {
    return block_rows_ * (vocabulary_ + tiles_ + 2 * parts_ + 4) +
           (gradients_.dx ? parts_ * block_rows_ * padded_width_ : 0);
  }
  /// Calls `use` with the products that this step has.
  template <class Use>
  void with_products(Use use) {
    if constexpr (std::is_same_v<T, float>)
      if (packed_) return use(*packed_);
    use(*panels_);
  }
  std::int64_t first_symbol(std::int64_t tile) const { return std::min(vocabulary_, tile * kTile); }
  std::int64_t symbols(std::int64_t tile) const { return first_symbol(tile + 1) - first_symbol(tile); }
  /// A part's tile, of which `end` is the end.
  SoftmaxTile<T> tile_of(std::int64_t tile, std::int64_t end) const {
    const std::int64_t first = first_symbol(tile);
    return {.weight = weight_ + first * width_,
            .logits = logits_ + first * lanes_,
            .lanes = lanes_,
            .count = symbols(tile),
            .next = tile + 1 < end ? symbols(tile + 1) : 0};
  }
  static Vector load(const T* from) {
    Vector x;
    std::memcpy(static_cast<void*>(&x), from, sizeof x);
    return x;
  }
  static void store_vector(const Vector& x, T* to) { std::memcpy(to, static_cast<const void*>(&x), sizeof x); }

  /// The first way over a part: its logits become exp(logit - the tile's maximum).
  void add_up(std::int64_t part, int thread) {
    T *const maxima = part_maxima_ + part * block_rows_, *const sums = part_sums_ + part * block_rows_;
    std::fill_n(maxima, lanes_, std::numeric_limits<T>::lowest());
    std::fill_n(sums, lanes_, T(0));
    const std::int64_t end = std::min(tiles_, (part + 1) * part_tiles_);
    for (std::int64_t tile = part * part_tiles_; tile < end; ++tile) {
      const std::int64_t begin = first_symbol(tile);
      const SoftmaxTile<T> symbols = tile_of(tile, end);
      with_products([&](const auto& products) { products.make_logits(symbols, bias_ + begin, thread); });
      for (std::int64_t r = 0; r < rows_; ++r)
        if (const std::int64_t target = targets_[first_ + r] - begin; target >= 0 && target < symbols.count)
          chosen_[r] = symbols.logits[target * lanes_ + r];
      for (std::int64_t r = 0; r < lanes_; r += kLanes)
        add_up_lanes(symbols.logits + r, symbols.count, maxima_ + tile * block_rows_ + r, maxima + r, sums + r);
    }
  }
  void add_up_lanes(T* logits, std::int64_t count, T* tile_maximum, T* maximum, T* sum) const {
    T lowest[kLanes];
    std::fill_n(lowest, kLanes, std::numeric_limits<T>::lowest());
    Vector largest = load(lowest);
    for (std::int64_t v = 0; v < count; ++v) {
      const Vector logit = load(logits + v * lanes_);
      largest = larger(logit, largest);
    }
    Vector total = largest - largest;
    for (std::int64_t v = 0; v < count; ++v) {
      const Vector power = detail::exponential(Vector(load(logits + v * lanes_) - largest));
      store_vector(power, logits + v * lanes_);
      total += power;
    }
    store_vector(largest, tile_maximum);
    const Vector before = load(maximum), after = larger(largest, before);
    store_vector(
        load(sum) * detail::exponential(Vector(before - after)) + total * detail::exponential(Vector(largest - after)),
        sum);
    store_vector(after, maximum);
  }
  static Vector larger(const Vector& a, const Vector& b) {
    if constexpr (std::is_same_v<T, float>)
      return a > b ? a : b;
    else
      return a.max(b);
  }

  /// Losses of the block's rows, and by what their exponentials become gradients.
  void finish_rows(T* row_loss) {
    for (std::int64_t r = 0; r < lanes_; ++r) {
      T largest = std::numeric_limits<T>::lowest(), sum = 0;
      for (std::int64_t part = 0; part < parts_; ++part)
        largest = std::max(largest, part_maxima_[part * block_rows_ + r]);
      for (std::int64_t part = 0; part < parts_; ++part)
        sum += part_sums_[part * block_rows_ + r] * std::exp(part_maxima_[part * block_rows_ + r] - largest);
      largest_[r] = largest;
      subtracted_[r] = r < rows_ ? row_weight_[first_ + r] : T(0);
      scale_[r] = subtracted_[r] / sum;
      if (r < rows_) row_loss[first_ + r] = std::log(sum) + (largest - chosen_[r]);
    }
  }

  /// The second way over a part.
  void make_gradients(std::int64_t part, int thread) {
    const std::int64_t begin = part * part_tiles_, end = std::min(tiles_, begin + part_tiles_);
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const std::int64_t first = first_symbol(tile);
      const SoftmaxTile<T> symbols = tile_of(tile, end);
      make_logit_gradients(symbols.logits, first, symbols.count, maxima_ + tile * block_rows_);
      with_products([&](const auto& products) {
        if (gradients_.dweight)
          products.weight_gradient(symbols, dweight_of(first), write_of(gradients_.dweight.write), thread);
        if (gradients_.dx)
          products.row_gradient(symbols, partial_dx(part), tile == begin ? Write::set : Write::add, thread);
      });
    }
  }
  T* partial_dx(std::int64_t part) const { return partial_dx_ + part * block_rows_ * padded_width_; }
  T* dweight_of(std::int64_t symbol) const { return gradients_.dweight.data<T>() + symbol * width_; }
  /// Of the first block what the caller says; of the others what comes is added.
  Write write_of(Write given) const { return first_ == 0 ? given : Write::add; }

  /// exp(logit - the tile's maximum) to weight * (softmax - [target]), 0 where the weight is 0, whatever was there; and
  /// the sums of it that are the bias's gradient.
  void make_logit_gradients(T* powers, std::int64_t first, std::int64_t count, T* tile_maxima) const {
    bool ignores = false;
    for (std::int64_t r = 0; r < lanes_; r += kLanes)
      store_vector(load(scale_ + r) * detail::exponential(Vector(load(tile_maxima + r) - load(largest_ + r))),
                   tile_maxima + r);
    for (std::int64_t r = 0; r < lanes_; ++r) ignores = ignores || subtracted_[r] == T(0);
    // Not by multiplying: 0 * infinity would not be 0.
    if (ignores)
      for (std::int64_t v = 0; v < count; ++v)
        for (std::int64_t r = 0; r < lanes_; ++r)
          if (subtracted_[r] == T(0)) powers[v * lanes_ + r] = tile_maxima[r] = T(0);
    bool is_target[kTile] = {};
    for (std::int64_t r = 0; r < rows_; ++r)
      if (const std::int64_t target = targets_[first_ + r] - first; target >= 0 && target < count)
        is_target[target] = true;
    T* const dbias = gradients_.dbias ? gradients_.dbias.data<T>() + first : nullptr;
    const bool add = write_of(gradients_.dbias.write) == Write::add;
    for (std::int64_t v = 0; v < count; ++v) {
      T sums[kLanes] = {};
      Vector sum = load(sums);
      for (std::int64_t r = 0; r < lanes_; r += kLanes) {
        const Vector scaled = load(powers + v * lanes_ + r) * load(tile_maxima + r);
        store_vector(scaled, powers + v * lanes_ + r);
        sum += scaled;
      }
      // Before the sum, not from it: what is left of a softmax near 1 would be lost in its rounding.
      if (is_target[v]) sum = sum_without_targets(powers + v * lanes_, static_cast<std::int32_t>(first + v));
      if (dbias == nullptr) continue;
      store_vector(sum, sums);
      T total = 0;
      for (const T lane : sums) total += lane;
      dbias[v] = add ? dbias[v] + total : total;
    }
  }
  /// Subtracts the weights of the rows that have this target; the sum over rows, lane by lane.
  Vector sum_without_targets(T* scaled, std::int32_t symbol) const {
    for (std::int64_t r = 0; r < rows_; ++r)
      if (targets_[first_ + r] == symbol) scaled[r] -= subtracted_[r];
    Vector sum = load(scaled);
    for (std::int64_t r = kLanes; r < lanes_; r += kLanes) sum += load(scaled + r);
    return sum;
  }
  void add_partial_dx() const {
    T* const dx = gradients_.dx.data<T>() + first_ * width_;
    parallel_chunks(rows_, row_chunk(parts_ * width_), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const auto partial = [&](std::int64_t part) {
          return vec(static_cast<const T*>(partial_dx(part) + r * padded_width_), width_);
        };
        auto row = vec(dx + r * width_, width_);
        store(row, partial(0), gradients_.dx.write);
        for (std::int64_t part = 1; part < parts_; ++part) row += partial(part);
      }
    });
  }

  const LinearCrossEntropyGradients& gradients_;
  std::int64_t count_, width_, padded_width_, vocabulary_;
  std::int64_t block_rows_;  ///< of a block, whole vectors
  std::int64_t tiles_, part_tiles_, parts_;
  const T *x_, *weight_, *bias_;
  const std::int32_t* targets_;
  const T* row_weight_;
  Workspace memory_;
  std::int64_t first_ = 0, rows_ = 0, lanes_ = 0;  ///< of the block at work; lanes: rows up to whole vectors
  T* logits_;                                      ///< [V, lanes]
  T *maxima_, *part_maxima_, *part_sums_;          ///< of every tile and every part: [block_rows]
  T *chosen_, *largest_, *scale_, *subtracted_;    ///< of every row
  T* partial_dx_;                                  ///< of every part: [block_rows, padded_width]
  std::optional<PanelProducts<T>> panels_;
  std::optional<PackedProducts> packed_;
};

void linear_cross_entropy(Step& step, const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                          const Tensor& row_weight, std::int64_t rows, Tensor& row_loss, Tensor& loss,
                          const LinearCrossEntropyGradients& gradients) {
  dispatch_float(x.dtype(), "linear_cross_entropy", [&]<class T>() {
    T* const losses = row_loss.data<T>();
    Softmax<T> softmax(step, x, weight, bias, targets, row_weight, rows, gradients);
    if (!step.computes()) return;
    softmax.run(losses);
    const T* const weights = row_weight.data<const T>();
    double total = 0;
    for (std::int64_t r = 0; r < x.shape().rows(); ++r)
      if (weights[r] != T(0)) total += static_cast<double>(weights[r]) * static_cast<double>(losses[r]);
    loss.data<T>()[0] = static_cast<T>(total);
  });
}

const bool bound = kernels::linear_cross_entropy.bind(DeviceKind::cpu, &linear_cross_entropy, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
