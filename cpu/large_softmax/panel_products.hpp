#pragma once
/// The products of a large softmax by register blocks of our own (register_product.hpp), f32 and f64. Rows are copied
/// once for the whole vocabulary, as they lie and transposed; the weight is read where it lies. Where products are of
/// bf16 operands but the processor has no instructions for them, operands are rounded where they are copied or made.

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/bf16.hpp"
#include "core/step.hpp"
#include "cpu/large_softmax/softmax_tile.hpp"
#include "cpu/parallel.hpp"
#include "cpu/register_product.hpp"

namespace engram::cpu {

template <class T>
class PanelProducts {
 public:
  /// For blocks of at most `rows` rows of `width` numbers.
  PanelProducts(Step& step, std::int64_t rows, std::int64_t width, int threads)
      : width_(width),
        padded_width_(pieces(width, kLanes) * kLanes),
        rounds_(std::is_same_v<T, float> && step.products() == ProductPrecision::bf16),
        columns_size_(width * panels(rows)),
        block_size_(rows * panels(padded_width_)),
        memory_(step.workspace(static_cast<std::size_t>(columns_size_ + block_size_ + threads * scratch_size()) *
                               sizeof(T))) {}

  /// The rows that the products meet from now on: [rows, width].
  void take_rows(const T* x, std::int64_t rows) {
    rows_ = rows;
    lanes_ = pieces(rows, kLanes) * kLanes;
    T *const columns = this->columns(), *const block = this->block();
    parallel_chunks(lanes_, kLanes, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r)
        for (std::int64_t i = 0; i < padded_width_; ++i) {
          const T element = r < rows_ && i < width_ ? rounded(x[r * width_ + i]) : T(0);
          block[i / kPanel * block_panel() + r * kPanel + i % kPanel] = element;
          if (i < width_) columns[r / kPanel * columns_panel() + i * kPanel + r % kPanel] = element;
        }
    });
  }

  /// logits[count, lanes] (set) = weight rows^T + bias.
  void make_logits(const SoftmaxTile<T>& tile, const T* bias, int thread) const {
    FetchedAhead ahead(tile.weight + tile.count * width_, tile.next * width_, tile.count * lanes_ * width_);
    const T* const weight = rounds_ ? rounded_rows(tile.weight, tile.count, scratch(thread)) : tile.weight;
    for (std::int64_t v = 0; v < tile.count; v += kProductRows)
      multiply_pieces<T>({.m = std::min(kProductRows, tile.count - v),
                          .n = lanes_,
                          .k = width_,
                          .a = weight + v * width_,
                          .a_row = width_,
                          .a_inner = 1,
                          .b = columns(),
                          .b_stride = kPanel,
                          .b_panel = columns_panel(),
                          .c = tile.logits + v * lanes_,
                          .c_stride = lanes_,
                          .start = bias + v,
                          .ahead = &ahead});
  }
  /// dweight[count, width] (set or add) = gradients rows. Rounds the gradients where products do.
  void weight_gradient(const SoftmaxTile<T>& tile, T* dweight, Write write, int) const {
    round_gradients(tile);
    FetchedAhead ahead(dweight + tile.count * width_, tile.next * width_, tile.count * lanes_ * width_);
    for (std::int64_t v = 0; v < tile.count; v += kProductRows)
      multiply_pieces<T>({.m = std::min(kProductRows, tile.count - v),
                          .n = width_,
                          .k = rows_,
                          .a = tile.logits + v * lanes_,
                          .a_row = lanes_,
                          .a_inner = 1,
                          .b = block(),
                          .b_stride = kPanel,
                          .b_panel = block_panel(),
                          .c = dweight + v * width_,
                          .c_stride = width_,
                          .write = write,
                          .ahead = &ahead});
  }
  /// drows[rows, width] (set or add) = gradients^T weight, rows of `drows` padded to whole vectors.
  void row_gradient(const SoftmaxTile<T>& tile, T* drows, Write write, int thread) const {
    round_gradients(tile);
    for (std::int64_t v = 0; v < tile.count; v += kWeightRows) {
      // The weight during the first two thirds, exponentials during the last.
      const T *const weight = tile.weight + tile.count * width_, *const logits = tile.logits + tile.count * lanes_;
      const std::int64_t half = tile.next * width_ / 2, work = tile.count * lanes_ * width_ / 3;
      FetchedAhead ahead = v < 2 * kWeightRows ? FetchedAhead(weight + (v == 0 ? 0 : half), half, work)
                                               : FetchedAhead(logits, tile.next * lanes_, work);
      add_row_gradient(tile, v, drows, v == 0 ? write : Write::add, scratch(thread), ahead);
    }
  }

 private:
  static constexpr std::int64_t kLanes = SoftmaxTile<T>::kLanes;
  static constexpr std::int64_t kPanel = kPanelColumns<T>, kTile = SoftmaxTile<T>::kSymbols;
  /// Symbols that a product of the weight sums over at a time: its rows are not aligned, so a panel of them has more
  /// lines than vectors.
  static constexpr std::int64_t kWeightRows = 64;
  static_assert(kTile == 3 * kWeightRows && kTile % kProductRows == 0);

  static constexpr std::int64_t pieces(std::int64_t count, std::int64_t piece) { return (count + piece - 1) / piece; }
  static constexpr std::int64_t panels(std::int64_t count) { return pieces(count, kPanel) * kPanel; }
  std::int64_t block_panel() const { return lanes_ * kPanel; }
  std::int64_t columns_panel() const { return width_ * kPanel; }
  /// Rounded rows of the weight.
  std::int64_t scratch_size() const { return rounds_ ? kTile * width_ : 0; }
  T* columns() const { return memory_.template data<T>(); }
  T* block() const { return columns() + columns_size_; }
  T* scratch(int thread) const { return block() + block_size_ + thread * scratch_size(); }

  T rounded(T number) const {
    if constexpr (std::is_same_v<T, float>)
      if (rounds_) return static_cast<float>(bf16(number));
    return number;
  }
  const T* rounded_rows(const T* rows, std::int64_t count, T* copy) const {
    for (std::int64_t i = 0; i < count * width_; ++i) copy[i] = rounded(rows[i]);
    return copy;
  }
  void round_gradients(const SoftmaxTile<T>& tile) const {
    for (std::int64_t i = 0; rounds_ && i < tile.count * lanes_; ++i) tile.logits[i] = rounded(tile.logits[i]);
  }
  /// Of the symbols from `first` of the tile on.
  void add_row_gradient(const SoftmaxTile<T>& tile, std::int64_t first, T* to, Write write, T* copy,
                        FetchedAhead& ahead) const {
    const T* weight = tile.weight + first * width_;
    const std::int64_t count = std::min(kWeightRows, tile.count - first);
    if (rounds_) weight = rounded_rows(weight, count, copy);
    multiply_pieces<T>({.m = lanes_,
                        .n = width_,
                        .k = count,
                        .a = tile.logits + first * lanes_,
                        .a_row = 1,
                        .a_inner = lanes_,
                        .b = weight,
                        .b_stride = width_,
                        .c = to,
                        .c_stride = padded_width_,
                        .write = write,
                        .ahead = &ahead});
  }

  std::int64_t width_, padded_width_;
  bool rounds_;
  std::int64_t columns_size_, block_size_;
  Workspace memory_;  ///< x transposed, [n, lanes], and as it lies, [lanes, n], both in panels; copies of the threads
  std::int64_t rows_ = 0, lanes_ = 0;
};

}  // namespace engram::cpu
