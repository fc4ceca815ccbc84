#include "core/kernels/add.hpp"

#include "cuda/elements.cuh"

namespace engram::cuda::add_kernels {
namespace {

template <class T>
struct Add {
  const T* a;
  const T* b;
  T* y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<Compute<T>, kWidth> sum = load<kWidth>(a + i);
    const Pack<Compute<T>, kWidth> other = load<kWidth>(b + i);
    for (int j = 0; j < kWidth; ++j) sum.value[j] += other.value[j];
    store(y + i, sum);
  }
};

void add(Step& step, const Tensor& a, const Tensor& b, Tensor& y) {
  dispatch_storage(y.dtype(), "add", [&]<class T>() {
    const Add<T> body{a.data<const T>(), b.data<const T>(), y.data<T>()};
    for_each_element<T>(step, y.count(), aligned_for_packs(body.a, body.b, body.y), body);
  });
}

const bool bound = kernels::add.bind(kThisDevice, &add);

}  // namespace
}  // namespace engram::cuda::add_kernels
