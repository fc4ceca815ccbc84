#pragma once
/// A cache of numbers on the device that depend on lengths alone: sinusoids of distances and indices of rows. Each is
/// made on the host once, before steps are captured, and stays. The backend of the steps must outlive them.

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "core/allocator.hpp"
#include "core/step.hpp"

namespace engram {

class DeviceConstants {
 public:
  /// Rows 0 .. rows - 1 of R, [rows, width]: R_p[m] = sin(p w_m), R_p[width / 2 + m] = cos(p w_m) with w_m = 10000^(-2
  /// m / width), computed in double (Vaswani et al. 2017, section 3.5, in the order of [transformer-xl 1.2]). Even
  /// width.
  Tensor sinusoids(Step& step, std::int64_t rows, std::int64_t width, DType dtype);

  /// What an index is for, and the numbers that it depends on.
  using Key = std::array<std::int64_t, 4>;
  /// i32 of this shape; row_of(i) is element i in row-major order. Called once for every key.
  const Tensor& index(Step& step, const Key& key, const Shape& shape,
                      const std::function<std::int64_t(std::int64_t)>& row_of);

 private:
  Allocator& allocator(Step& step);

  std::unique_ptr<HeapAllocator> allocator_;  // before what it gave
  Backend* backend_ = nullptr;
  std::vector<Tensor> sinusoids_;  // of every dtype and width; captured steps may still read the shorter ones
  std::map<Key, Tensor> indices_;
};

}  // namespace engram
