#include "core/kernels/relu_dropout.hpp"

#include "cpu/dropout_bits.hpp"
#include "cpu/ordered_sum.hpp"

namespace engram::cpu {
namespace {

constexpr std::int64_t kPiece = 1024;  // multipliers that stay in the first cache

void relu_dropout_forward(Step&, const Tensor& x, const Tensor& bias, RandomStream random, DropoutRule rule,
                          Tensor& y) {
  dispatch_float(x.dtype(), "relu_dropout", [&]<class T>() {
    const std::int64_t n = x.shape()[-1];
    const T* in = x.data<const T>();
    const T* offset = bias.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(x.shape().rows(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      T multipliers[kPiece];
      for (std::int64_t r = begin; r < end; ++r)
        for (std::int64_t first = 0; first < n; first += kPiece) {
          const std::int64_t count = std::min(kPiece, n - first), at = r * n + first;
          dropout_multipliers(random, rule, static_cast<std::uint64_t>(at), count, multipliers);
          for (std::int64_t i = 0; i < count; ++i) {
            const T sum = in[at + i] + offset[first + i];
            // Two choices between numbers that are there in any case, which the compiler makes vectors of; a dropped
            // element is 0 even where the sum is infinite.
            const T positive = sum > T(0) ? sum : T(0), product = positive * multipliers[i];
            out[at + i] = multipliers[i] > T(0) ? product : T(0);
          }
        }
    });
  });
}

/// One row's gradients. The product is taken in any case, which the compiler needs to see before it makes vectors of
/// the choice.
template <class T>
void row_gradients(const T* y, const T* dy, T multiplier, std::int64_t n, T* dx) {
  for (std::int64_t i = 0; i < n; ++i) {
    const T product = dy[i] * multiplier;
    dx[i] = y[i] > T(0) ? product : T(0);
  }
}

void relu_dropout_backward(Step& step, const Tensor& y, const Tensor& dy, DropoutRule rule, Tensor& dx,
                           const Target& dbias) {
  dispatch_float(y.dtype(), "relu_dropout", [&]<class T>() {
    const std::int64_t n = y.shape()[-1];
    const RowSumChunks chunks(y.shape().rows());
    const Workspace memory = step.workspace(dbias ? static_cast<std::size_t>(chunks.count * n) * sizeof(T) : 0);
    if (!step.computes()) return;
    const T* out = y.data<const T>();
    const T* gradient = dy.data<const T>();
    T* result = dx.data<T>();
    T* partial = dbias ? memory.data<T>() : nullptr;
    const T multiplier = static_cast<T>(rule.multiplier);
    parallel_chunks(chunks.rows, chunks.chunk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin * n; at < end * n; at += n) {
        row_gradients(out + at, gradient + at, multiplier, n, result + at);
        if (partial == nullptr) continue;
        auto sum = vec(partial + begin / chunks.chunk * n, n);
        if (at == begin * n)
          sum = vec(result + at, n);
        else
          sum += vec(result + at, n);
      }
    });
    if (dbias) add_partial_rows(partial, chunks.count, n, n, dbias.data<T>(), dbias.write);
  });
}

const bool bound =
    kernels::relu_dropout_forward.bind(DeviceKind::cpu, &relu_dropout_forward) &&
    kernels::relu_dropout_backward.bind(DeviceKind::cpu, &relu_dropout_backward, KernelMemory::workspace);

}  // namespace
}  // namespace engram::cpu
