#include "core/kernels/fill.hpp"

#include "cuda/elements.cuh"

namespace engram::cuda::fill_kernels {
namespace {

template <class T>
struct Fill {
  T* y;
  Compute<T> value;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<Compute<T>, kWidth> out;
    for (int j = 0; j < kWidth; ++j) out.value[j] = value;
    store(y + i, out);
  }
};

template <class T>
void fill_with(Step& step, Tensor& y, Compute<T> value) {
  T* out = y.data<T>();
  for_each_element<T>(step, y.count(), aligned_for_packs(out), Fill<T>{out, value});
}

void fill(Step& step, Tensor& y, double value) {
  switch (y.dtype()) {
    case DType::f32:
      return fill_with<float>(step, y, static_cast<float>(value));
    case DType::f64:
      return fill_with<double>(step, y, value);
    case DType::bf16:
      return fill_with<bf16>(step, y, static_cast<float>(value));
    case DType::i32:
      return fill_with<std::int32_t>(step, y, static_cast<std::int32_t>(value));
    case DType::i64:
      return fill_with<std::int64_t>(step, y, static_cast<std::int64_t>(value));
  }
}

const bool bound = kernels::fill.bind(kThisDevice, &fill);

}  // namespace
}  // namespace engram::cuda::fill_kernels
