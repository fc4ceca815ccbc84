#include "core/kernels/gather_rows.hpp"

#include "cuda/elements.cuh"
#include "cuda/warp.cuh"

namespace engram::cuda::gather_rows_kernels {
namespace {

template <class T>
struct Gather {
  const T* table;
  const std::int32_t* index;
  Compute<T> factor;
  std::int64_t n;
  T* y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<Compute<T>, kWidth> out = load<kWidth>(table + index[i / n] * n + i % n);
    for (int j = 0; j < kWidth; ++j) out.value[j] *= factor;
    store(y + i, out);
  }
};

void gather_rows(Step& step, const Tensor& table, const Tensor& index, double factor, Tensor& y) {
  dispatch_storage(table.dtype(), "gather_rows", [&]<class T>() {
    const Gather<T> body{table.data<const T>(), index.data<const std::int32_t>(), static_cast<Compute<T>>(factor),
                         table.shape()[-1], y.data<T>()};
    const bool in_packs = aligned_for_packs(body.table, body.y) && body.n % kPackWidth<T> == 0;
    for_each_element<T>(step, y.count(), in_packs, body);
  });
}

constexpr int kScatterWarps = 4;

/// A warp owns 32 kWidth columns of one row of the table and looks through all indices for it: additions come in order
/// of r, without sorting. Every warp reads R indices, which for tables of characters is far less than the gradients.
template <int kWidth, class T>
__global__ void __launch_bounds__(kWarpLanes* kScatterWarps)
    scatter(const T* dy, const std::int32_t* index, std::int64_t rows, std::int64_t n, Compute<T> factor,
            TargetElements<Compute<T>> dtable) {
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.y) * kScatterWarps + threadIdx.y;
  const std::int64_t column = (warp * kWarpLanes + threadIdx.x) * kWidth;
  const bool mine = column < n;
  Compute<T>* place = dtable.data + static_cast<std::int64_t>(blockIdx.x) * n + column;
  Pack<Compute<T>, kWidth> sum = {};
  if (mine && dtable.write == Write::add) sum = load<kWidth>(place);
  bool changed = dtable.write == Write::set;
  for (std::int64_t base = 0; base < rows; base += kWarpLanes) {
    const std::int64_t row = base + threadIdx.x;
    unsigned found = __ballot_sync(kAllLanes, row < rows && index[row] == static_cast<std::int32_t>(blockIdx.x));
    changed = changed || found != 0;
    for (; found != 0; found &= found - 1) {
      if (!mine) continue;
      const std::int64_t of = base + __ffs(static_cast<int>(found)) - 1;
      const Pack<Compute<T>, kWidth> gradient = load<kWidth>(dy + of * n + column);
      for (int j = 0; j < kWidth; ++j) sum.value[j] += factor * gradient.value[j];
    }
  }
  if (mine && changed) store(place, sum);
}

void scatter_rows(Step& step, const Tensor& dy, const Tensor& index, double factor, const Target& dtable) {
  dispatch_storage(dy.dtype(), "scatter_rows", [&]<class T>() {
    const std::int64_t n = dtable.tensor.shape()[-1], rows = index.count();
    const T* gradient = dy.data<const T>();
    const std::int32_t* ids = index.data<const std::int32_t>();
    const TargetElements<Compute<T>> out = dtable;
    const auto start = [&](auto kernel, int width) {
      const std::int64_t columns = std::int64_t{kWarpLanes} * kScatterWarps * width;
      launch(
          step,
          {.blocks = {dtable.tensor.shape()[0], (n + columns - 1) / columns}, .threads = {kWarpLanes, kScatterWarps}},
          kernel, gradient, ids, rows, n, static_cast<Compute<T>>(factor), out);
    };
    if (aligned_for_packs(gradient, out.data) && n % kPackWidth<T> == 0)
      start(&scatter<kPackWidth<T>, T>, kPackWidth<T>);
    else
      start(&scatter<1, T>, 1);
  });
}

const bool bound =
    kernels::gather_rows.bind(kThisDevice, &gather_rows) && kernels::scatter_rows.bind(kThisDevice, &scatter_rows);

}  // namespace
}  // namespace engram::cuda::gather_rows_kernels
