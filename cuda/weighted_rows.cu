#include "core/kernels/weighted_rows.hpp"

#include <type_traits>

#include "cuda/elements.cuh"
#include "cuda/part_sums.cuh"
#include "cuda/scaled_rows.cuh"

namespace engram::cuda::weighted_rows_kernels {
namespace {

/// The reads of a table, one after the other.
template <class T>
struct TableReads {
  using Element = T;
  const T* values;
  const std::int64_t* ids;
  const Compute<T>* weights;
  std::int64_t stride, width;

  __device__ const T* row(std::int64_t i) const { return values + ids[i] * stride; }
  __device__ Compute<T> weight(std::int64_t i) const { return weights[i]; }
};

template <int kWidth, int kPacks, class T, class Y>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps)
    read_rows(TableReads<T> terms, std::int64_t results, std::int64_t reads, Y* y) {
  using Columns = RowColumns<T, kWidth, kPacks>;
  const std::int64_t r = row_of_warp();
  if (r >= results) return;
  const Columns sums = sum_scaled_rows<kWidth, kPacks>(terms, r * reads, (r + 1) * reads, blockIdx.y, terms.width);
  for (int p = 0; p < kPacks; ++p) {
    const std::int64_t column = Columns::column(blockIdx.y, p);
    if (column < terms.width) store(y + r * terms.width + column, sums.pack[p]);
  }
}

void weighted_rows_forward(Step& step, const Tensor& values, const Tensor& ids, const Tensor& weights, Tensor& y) {
  dispatch_storage(values.dtype(), "weighted_rows", [&]<class T>() {
    dispatch_storage(y.dtype(), "weighted_rows", [&]<class Y>() {
      if constexpr (std::is_same_v<Compute<T>, Compute<Y>>) {
        const TableReads<T> terms{values.data<const T>(), ids.data<const std::int64_t>(),
                                  weights.data<const Compute<T>>(), values.shape()[1], y.shape()[1]};
        const std::int64_t results = ids.shape()[0], reads = ids.shape()[1];
        Y* out = y.data<Y>();
        const bool aligned = aligned_for_packs(terms.values, out) && terms.stride % kPackWidth<T> == 0;
        with_row_columns<T>(terms.width, aligned, [&]<int kWidth, int kPacks>() {
          launch(step, warp_for_each_row(results, terms.width, RowColumns<T, kWidth, kPacks>::kColumns),
                 read_rows<kWidth, kPacks, T, Y>, terms, results, reads, out);
        });
      }
    });
  });
}

constexpr std::int64_t kPlacesOfWarp = 8;

/// A warp has a few places of the order, one after the other: a row that several of them read is in the cache.
template <int kWidth, class T, class D>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps)
    weight_gradients(const T* values, const std::int64_t* ids, const D* dy, const std::int32_t* uses,
                     std::int64_t count, std::int64_t reads, std::int64_t part, std::int64_t parts,
                     TargetElements<Compute<T>> dweights) {
  using C = Compute<T>;
  const std::int64_t begin = row_of_warp() * kPlacesOfWarp;
  for (std::int64_t place = begin; place < begin + kPlacesOfWarp && place < count; ++place) {
    const std::int64_t use = uses[place];
    const T* row = values + ids[use] * part * parts;
    const D* gradient = dy + use / reads * part * parts;
    const C sum = sum_over_parts<C>(parts, [&](std::int64_t p) {
      C of_part = 0;
#pragma unroll 4
      for (std::int64_t i = p * part + kWidth * threadIdx.x; i < (p + 1) * part; i += kWarpLanes * kWidth) {
        const Pack<C, kWidth> a = load<kWidth>(row + i), b = load<kWidth>(gradient + i);
        for (int j = 0; j < kWidth; ++j) of_part += a.value[j] * b.value[j];
      }
      return warp_sum(of_part);
    });
    if (threadIdx.x == 0) write_pack(dweights, use, Pack<C, 1>{{sum}});
  }
}

void weighted_rows_weight_gradient(Step& step, const Tensor& values, const Tensor& ids, const Tensor& dy,
                                   const RowOrder& order, TableColumns columns, const Target& dweights) {
  dispatch_storage(values.dtype(), "weighted_rows", [&]<class T>() {
    dispatch_storage(dy.dtype(), "weighted_rows", [&]<class D>() {
      if constexpr (std::is_same_v<Compute<T>, Compute<D>>) {
        const T* table = values.data<const T>();
        const D* gradients = dy.data<const D>();
        const std::int64_t count = ids.count(), reads = ids.shape()[1];
        const std::int64_t part = columns.part(), parts = columns.parts();
        const std::int64_t warps = (count + kPlacesOfWarp - 1) / kPlacesOfWarp;
        const auto start = [&](auto kernel) {
          launch(step, {.blocks = (warps + kRowWarps - 1) / kRowWarps, .threads = {kWarpLanes, kRowWarps}}, kernel,
                 table, ids.data<const std::int64_t>(), gradients, order.uses.data<const std::int32_t>(), count, reads,
                 part, parts, dweights);
        };
        // Both in packs of as many numbers as the shorter type has in 16 bytes.
        constexpr int kWidth = kPackWidth < T >> kPackWidth<D> ? kPackWidth<T> : kPackWidth<D>;
        if (aligned_for_packs(table, gradients) && part % kWidth == 0)
          start(&weight_gradients<kWidth, T, D>);
        else
          start(&weight_gradients<1, T, D>);
      }
    });
  });
}

const bool bound = kernels::weighted_rows_forward.bind(kThisDevice, &weighted_rows_forward) &&
                   kernels::weighted_rows_weight_gradient.bind(kThisDevice, &weighted_rows_weight_gradient);

}  // namespace
}  // namespace engram::cuda::weighted_rows_kernels
