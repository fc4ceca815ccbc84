#pragma once
/// The products of a large softmax with bf16 operands, by the processor's own instructions (bf16_product.hpp). Rows are
/// rounded and packed once for the whole vocabulary, a tile of the weight and of the logits' gradients where it is
/// used.

#include <algorithm>
#include <cstdint>

#include "core/step.hpp"
#include "cpu/large_softmax/softmax_tile.hpp"
#include "cpu/packed_rows.hpp"

namespace engram::cpu {

class PackedProducts {
 public:
  /// For blocks of at most `rows` rows of `width` numbers.
  PackedProducts(Step& step, std::int64_t rows, std::int64_t width, int threads)
      : width_(width),
        stride_((width + kTileRows - 1) / kTileRows * kTileRows),
        rows_size_(PackedRows::size(rows, width, kUses)),
        a_size_(std::max(packed_size(kSymbols, std::max(width, rows)), packed_size(rows, kSymbols))),
        thread_size_(a_size_ + packed_size(width, kSymbols)),
        memory_(step.workspace(static_cast<std::size_t>(rows_size_ + thread_size_ * threads) * sizeof(bf16))) {}

  /// The rows that the products meet from now on: [rows, width]. On the calling thread.
  void take_rows(const float* x, std::int64_t rows) {
    rows_ = rows;
    packed_ = {rows, width_, kUses, memory_.data<bf16>()};
    packed_.pack(x, width_);
  }

  /// logits[count, lanes] (set) = weight rows^T + bias.
  void make_logits(const SoftmaxTile<float>& tile, const float* bias, int thread) const {
    for (std::int64_t v = 0; v < tile.count; ++v) std::fill_n(tile.logits + v * tile.lanes, tile.lanes, bias[v]);
    multiply({.m = tile.count,
              .n = rows_,
              .k = width_,
              .a = tile.weight,
              .a_stride = width_,
              .write = Write::add,
              .c = tile.logits,
              .c_stride = tile.lanes},
             packed_.against(0), {tile.weight + tile.count * width_, tile.next * width_}, thread);
  }
  /// dweight[count, width] (set or add) = gradients rows.
  void weight_gradient(const SoftmaxTile<float>& tile, float* dweight, Write write, int thread) const {
    multiply({.m = tile.count,
              .n = width_,
              .k = rows_,
              .a = tile.logits,
              .a_stride = tile.lanes,
              .write = write,
              .c = dweight,
              .c_stride = width_},
             packed_.times(0), {dweight + tile.count * width_, tile.next * width_}, thread);
  }
  /// drows[rows, width] (set or add) = gradients^T weight, rows of `drows` padded to whole vectors.
  void row_gradient(const SoftmaxTile<float>& tile, float* drows, Write write, int thread) const {
    const Gemm<float> product{.transpose_a = Transpose::yes,
                              .m = rows_,
                              .n = width_,
                              .k = tile.count,
                              .a = tile.logits,
                              .a_stride = tile.lanes,
                              .b = tile.weight,
                              .b_stride = width_,
                              .write = write,
                              .c = drows,
                              .c_stride = stride_};
    bf16* const b = of_thread(thread) + a_size_;
    pack_b(product, 0, strips_of(width_), b);
    // Not its weight: the products before this one have asked for what they need.
    multiply(product, {b, packed_size(kTileRows, tile.count)},
             {tile.logits + tile.count * tile.lanes, tile.next * tile.lanes}, thread);
  }

 private:
  static constexpr RowUses kUses{.against = true, .times = true};
  static constexpr std::int64_t kSymbols = SoftmaxTile<float>::kSymbols;

  bf16* of_thread(int thread) const { return memory_.data<bf16>() + rows_size_ + thread * thread_size_; }
  /// What is needed next, and lies in memory: asked for piece by piece between the parts of a product.
  struct Ahead {
    const float* next;
    std::int64_t count;

    void fetch(std::int64_t part, std::int64_t parts) const {
      constexpr std::int64_t kLine = 16;
      for (std::int64_t i = count * part / parts / kLine * kLine; i < count * (part + 1) / parts; i += kLine)
        __builtin_prefetch(next + i, 0, 2);
    }
  };
  void multiply(const Gemm<float>& product, const PackedB& b, const Ahead& ahead, int thread) const {
    bf16* const a = of_thread(thread);
    const std::int64_t strips = strips_of(product.m);
    pack_a(product, 0, strips, a);
    for (std::int64_t strip = 0; strip < strips; strip += 2) {
      ahead.fetch(strip / 2, (strips + 1) / 2);
      multiply_strips(product, a, b, {strip, std::min(strip + 2, strips), 0, strips_of(product.n)});
    }
  }

  std::int64_t width_, stride_, rows_size_, a_size_, thread_size_, rows_ = 0;
  Workspace memory_;
  PackedRows packed_;
};

}  // namespace engram::cpu
