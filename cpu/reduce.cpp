#include "core/kernels/reduce.hpp"

#include "cpu/ordered_sum.hpp"

namespace engram::cpu {
namespace {

void sum_forward(Step& step, const Tensor& x, double factor, Tensor& y) {
  dispatch_float(x.dtype(), "sum", [&]<class T>() {
    const T* in = x.data<const T>();
    const std::int64_t chunks = (x.count() + kElementChunk - 1) / kElementChunk;
    const Workspace memory = step.workspace(static_cast<std::size_t>(chunks) * sizeof(double));
    if (!step.computes()) return;
    double* partial = memory.data<double>();
    parallel_chunks(x.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      partial[begin / kElementChunk] =
          sum_in_lanes(begin, end, [in](std::int64_t i) { return static_cast<double>(in[i]); });
    });
    double total = 0;
    for (std::int64_t c = 0; c < chunks; ++c) total += partial[c];
    y.data<T>()[0] = static_cast<T>(factor * total);
  });
}

void sum_backward(Step&, const Tensor& dy, double factor, const Target& dx) {
  dispatch_float(dx.tensor.dtype(), "sum", [&]<class T>() {
    const T gradient = static_cast<T>(factor * static_cast<double>(dy.data<const T>()[0]));
    T* out = dx.data<T>();
    parallel_chunks(dx.tensor.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      auto part = vec(out + begin, end - begin);
      if (dx.write == Write::add)
        part += gradient;
      else
        part = gradient;
    });
  });
}

const bool bound = kernels::sum_forward.bind(DeviceKind::cpu, &sum_forward, KernelMemory::workspace) &&
                   kernels::sum_backward.bind(DeviceKind::cpu, &sum_backward);

}  // namespace
}  // namespace engram::cpu
