#include "core/kernels/fill.hpp"

#include "cpu/fill_elements.hpp"

namespace engram::cpu {
namespace {

template <class T>
void fill_with(Tensor& y, T value) {
  fill_elements(y.data<T>(), y.count(), value);
}

void fill(Step&, Tensor& y, double value) {
  switch (y.dtype()) {
    case DType::f32:
      return fill_with(y, static_cast<float>(value));
    case DType::f64:
      return fill_with(y, value);
    case DType::bf16:
      return fill_with(y, bf16(static_cast<float>(value)));
    case DType::i32:
      return fill_with(y, static_cast<std::int32_t>(value));
    case DType::i64:
      return fill_with(y, static_cast<std::int64_t>(value));
  }
}

const bool bound = kernels::fill.bind(DeviceKind::cpu, &fill);

}  // namespace
}  // namespace engram::cpu
