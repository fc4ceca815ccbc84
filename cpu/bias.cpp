#include "core/kernels/bias.hpp"

#include "cpu/ordered_sum.hpp"

namespace engram::cpu {
namespace {

void bias_forward(Step&, const Tensor& bias, Tensor& y) {
  dispatch_float(y.dtype(), "bias", [&]<class T>() {
    const std::int64_t n = y.shape()[-1];
    const auto offset = vec(bias.data<const T>(), n);
    T* out = y.data<T>();
    parallel_chunks(y.shape().rows(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) vec(out + r * n, n) += offset;
    });
  });
}

void bias_backward(Step& step, const Tensor& dy, const Target& dbias) {
  dispatch_float(dy.dtype(), "bias", [&]<class T>() {
    const std::int64_t n = dy.shape()[-1];
    const RowSumChunks chunks(dy.shape().rows());
    const Workspace memory = step.workspace(static_cast<std::size_t>(chunks.count * n) * sizeof(T));
    if (!step.computes()) return;
    T* partial = memory.data<T>();
    const T* gradient = dy.data<const T>();
    parallel_chunks(chunks.rows, chunks.chunk, [&](std::int64_t begin, std::int64_t end) {
      auto sum = vec(partial + begin / chunks.chunk * n, n);
      sum = vec(gradient + begin * n, n);
      for (std::int64_t r = begin + 1; r < end; ++r) sum += vec(gradient + r * n, n);
    });
    add_partial_rows(partial, chunks.count, n, n, dbias.data<T>(), dbias.write);
  });
}

const bool bound = kernels::bias_forward.bind(DeviceKind::cpu, &bias_forward) &&
                   kernels::bias_backward.bind(DeviceKind::cpu, &bias_backward, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
