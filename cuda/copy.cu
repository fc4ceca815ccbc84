#include "core/kernels/copy.hpp"

#include <algorithm>
#include <type_traits>

#include "cuda/elements.cuh"

namespace engram::cuda::copy_kernels {
namespace {

template <class From, class To>
struct Convert {
  const From* x;
  To* y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const Pack<Compute<From>, kWidth> in = load<kWidth>(x + i);
    Pack<Compute<To>, kWidth> out;
    for (int j = 0; j < kWidth; ++j) out.value[j] = static_cast<Compute<To>>(in.value[j]);
    store(y + i, out);
  }
};

template <class From, class To>
void convert_elements(Step& step, const Tensor& x, Tensor& y) {
  using Larger = std::conditional_t<(sizeof(From) > sizeof(To)), From, To>;
  const From* in = x.data<const From>();
  To* out = y.data<To>();
  for_each_element<Larger>(step, y.count(), aligned_for_packs(in, out), Convert<From, To>{in, out});
}

void convert(Step& step, const Tensor& x, Tensor& y) {
  dispatch_storage(x.dtype(), "convert", [&]<class From>() {
    dispatch_storage(y.dtype(), "convert", [&]<class To>() { convert_elements<From, To>(step, x, y); });
  });
}

template <class From, class To>
struct Accumulate {
  const From* x;
  Compute<To> factor;
  TargetElements<To> y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<Compute<To>, kWidth> out = load<kWidth>(x + i);
    for (int j = 0; j < kWidth; ++j) out.value[j] *= factor;
    write_pack(y, i, out);
  }
};

template <class From, class To>
void accumulate_elements(Step& step, const Tensor& x, double factor, const Target& y) {
  const Accumulate<From, To> body{x.data<const From>(), static_cast<Compute<To>>(factor), y};
  for_each_element<From>(step, y.tensor.count(), aligned_for_packs(body.x, body.y.data), body);
}

void accumulate(Step& step, const Tensor& x, double factor, const Target& y) {
  if (x.dtype() == DType::bf16 && y.tensor.dtype() == DType::f32)
    return accumulate_elements<bf16, float>(step, x, factor, y);
  dispatch_storage(y.tensor.dtype(), "accumulate", [&]<class T>() { accumulate_elements<T, T>(step, x, factor, y); });
}

template <class T>
struct CopyRuns {
  const T* x;
  std::int64_t x_stride;
  T* y;
  std::int64_t y_stride;
  std::int64_t length;
  Write write;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const std::int64_t run = i / length, place = i % length;
    write_pack(y + run * y_stride + place, load<kWidth>(x + run * x_stride + place), write);
  }
};

void copy_runs(Step& step, const Tensor& x, kernels::Runs from, const Target& y, kernels::Runs to, std::int64_t runs,
               std::int64_t length) {
  if (runs == 0 || length == 0) return;
  dispatch_storage(y.tensor.dtype(), "copy_runs", [&]<class T>() {
    const T* in = x.data<const T>() + from.offset;
    T* out = y.data<T>() + to.offset;
    // A pack must not cross from one run to the next.
    const bool in_packs = aligned_for_packs(in, out) && length % kPackWidth<T> == 0 &&
                          from.stride % kPackWidth<T> == 0 && to.stride % kPackWidth<T> == 0;
    for_each_element<T>(step, runs * length, in_packs, CopyRuns<T>{in, from.stride, out, to.stride, length, y.write});
  });
}

const bool bound = kernels::convert.bind(kThisDevice, &convert) && kernels::accumulate.bind(kThisDevice, &accumulate) &&
                   kernels::copy_runs.bind(kThisDevice, &copy_runs);

}  // namespace
}  // namespace engram::cuda::copy_kernels
