#include "nn/layers/device_constants.hpp"

#include <algorithm>
#include <cmath>

namespace engram {

Allocator& DeviceConstants::allocator(Step& step) {
  if (backend_ != &step.backend()) {
    sinusoids_.clear();
    indices_.clear();
    backend_ = &step.backend();
    allocator_ = std::make_unique<HeapAllocator>(*backend_);
  }
  return *allocator_;
}

Tensor DeviceConstants::sinusoids(Step& step, std::int64_t rows, std::int64_t width, DType dtype) {
  Allocator& memory = allocator(step);
  std::int64_t longest = 0;  // of this kind
  for (const Tensor& table : sinusoids_) {
    if (table.shape()[1] != width || table.dtype() != dtype) continue;
    if (table.shape()[0] >= rows) return table.rows(0, rows);
    longest = std::max(longest, table.shape()[0]);
  }
  // Twice the one before at least, so that growing lengths cost no more memory than the last of them.
  const std::int64_t length = std::max(rows, 2 * longest);
  Tensor table({length, width}, dtype, backend_->device(), memory);
  const std::int64_t half = width / 2;
  std::vector<double> values(static_cast<std::size_t>(length * width));
  for (std::int64_t m = 0; m < half; ++m) {
    const double frequency = std::pow(10000.0, -2.0 * static_cast<double>(m) / static_cast<double>(width));
    for (std::int64_t p = 0; p < length; ++p) {
      const double angle = static_cast<double>(p) * frequency;
      values[static_cast<std::size_t>(p * width + m)] = std::sin(angle);
      values[static_cast<std::size_t>(p * width + half + m)] = std::cos(angle);
    }
  }
  dispatch_storage(dtype, "sinusoids", [&]<class T>() {
    std::vector<T> host(values.size());
    std::ranges::transform(values, host.begin(),
                           [](double value) { return static_cast<T>(static_cast<Compute<T>>(value)); });
    backend_->copy(table.raw(), host.data(), table.bytes(), CopyKind::host_to_device);
  });
  sinusoids_.push_back(std::move(table));
  return sinusoids_.back().rows(0, rows);
}

const Tensor& DeviceConstants::index(Step& step, const Key& key, const Shape& shape,
                                     const std::function<std::int64_t(std::int64_t)>& row_of) {
  Allocator& memory = allocator(step);
  if (const auto made = indices_.find(key); made != indices_.end()) return made->second;
  std::vector<std::int32_t> host(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < host.size(); ++i)
    host[i] = static_cast<std::int32_t>(row_of(static_cast<std::int64_t>(i)));
  const Tensor index(shape, DType::i32, backend_->device(), memory);
  backend_->copy(index.raw(), host.data(), index.bytes(), CopyKind::host_to_device);
  return indices_.emplace(key, index).first->second;
}

}  // namespace engram
