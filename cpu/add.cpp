#include "core/kernels/add.hpp"

#include "cpu/parallel.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

void add(Step&, const Tensor& a, const Tensor& b, Tensor& y) {
  dispatch_float(y.dtype(), "add", [&]<class T>() {
    const T* left = a.data<const T>();
    const T* right = b.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(y.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      vec(out + begin, end - begin) = vec(left + begin, end - begin) + vec(right + begin, end - begin);
    });
  });
}

const bool bound = kernels::add.bind(DeviceKind::cpu, &add);

}  // namespace
}  // namespace engram::cpu
