#include "core/kernels/copy.hpp"

#include <algorithm>
#include <type_traits>

#include "cuda/elements.cuh"

namespace engram::cuda {
namespace {

template <class From, class To>
struct Convert {
  const From* x;
  To* y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    // bf16 converts from and to float only; a double goes through it.
    using Middle = std::conditional_t<std::is_same_v<From, bf16> || std::is_same_v<To, bf16>, float, To>;
    const Pack<From, kWidth> in = load<kWidth>(x + i);
    Pack<To, kWidth> out;
    for (int j = 0; j < kWidth; ++j) out.value[j] = static_cast<To>(static_cast<Middle>(in.value[j]));
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

template <class T>
struct Accumulate {
  const T* x;
  T factor;
  T* y;
  Write write;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<T, kWidth> out = load<kWidth>(x + i);
    for (int j = 0; j < kWidth; ++j) out.value[j] *= factor;
    write_pack(y + i, out, write);
  }
};

void accumulate(Step& step, const Tensor& x, double factor, Tensor& y, Write write) {
  dispatch_float(y.dtype(), "accumulate", [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    for_each_element<T>(step, y.count(), aligned_for_packs(in, out),
                        Accumulate<T>{in, static_cast<T>(factor), out, write});
  });
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

void copy_runs(Step& step, const Tensor& x, kernels::Runs from, Tensor& y, kernels::Runs to, std::int64_t runs,
               std::int64_t length, Write write) {
  if (runs == 0 || length == 0) return;
  dispatch_float(y.dtype(), "copy_runs", [&]<class T>() {
    const T* in = x.data<const T>() + from.offset;
    T* out = y.data<T>() + to.offset;
    // A pack must not cross from one run to the next.
    const bool in_packs = aligned_for_packs(in, out) && length % kPackWidth<T> == 0 &&
                          from.stride % kPackWidth<T> == 0 && to.stride % kPackWidth<T> == 0;
    for_each_element<T>(step, runs * length, in_packs, CopyRuns<T>{in, from.stride, out, to.stride, length, write});
  });
}

const bool bound = kernels::convert.bind(kThisDevice, &convert) && kernels::accumulate.bind(kThisDevice, &accumulate) &&
                   kernels::copy_runs.bind(kThisDevice, &copy_runs);

}  // namespace
}  // namespace engram::cuda
