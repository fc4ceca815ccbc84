#include "core/kernels/copy.hpp"

#include "core/error.hpp"
#include "cpu/parallel.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {
namespace {

template <class From, class To>
void convert_elements(const Tensor& x, Tensor& y) {
  const From* in = x.data<const From>();
  To* out = y.data<To>();
  // bf16 converts from and to float only; a double goes through it.
  using Middle = std::conditional_t<std::is_same_v<From, bf16> || std::is_same_v<To, bf16>, float, To>;
  parallel_chunks(y.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) out[i] = static_cast<To>(static_cast<Middle>(in[i]));
  });
}

void convert(Step&, const Tensor& x, Tensor& y) {
  dispatch_storage(x.dtype(), "convert", [&]<class From>() {
    dispatch_storage(y.dtype(), "convert", [&]<class To>() { convert_elements<From, To>(x, y); });
  });
}

void accumulate(Step&, const Tensor& x, double factor, const Target& y) {
  dispatch_float(y.tensor.dtype(), "accumulate", [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    const T scale = static_cast<T>(factor);
    parallel_chunks(y.tensor.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      store(vec(out + begin, end - begin), vec(in + begin, end - begin) * scale, y.write);
    });
  });
}

void copy_runs(Step&, const Tensor& x, kernels::Runs from, const Target& y, kernels::Runs to, std::int64_t runs,
               std::int64_t length) {
  if (runs == 0 || length == 0) return;
  dispatch_float(y.tensor.dtype(), "copy_runs", [&]<class T>() {
    const T* in = x.data<const T>() + from.offset;
    T* out = y.data<T>() + to.offset;
    const auto copy = [&](std::int64_t run, std::int64_t begin, std::int64_t end) {
      store(vec(out + run * to.stride + begin, end - begin), vec(in + run * from.stride + begin, end - begin), y.write);
    };
    if (length >= kElementChunk) {  // few long runs: cut inside them
      const std::int64_t pieces = (length + kElementChunk - 1) / kElementChunk;
      parallel_items(runs * pieces, [&](std::int64_t item) {
        const std::int64_t begin = item % pieces * kElementChunk;
        copy(item / pieces, begin, std::min(length, begin + kElementChunk));
      });
    } else {
      parallel_chunks(runs, row_chunk(length), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t run = begin; run < end; ++run) copy(run, 0, length);
      });
    }
  });
}

const bool bound = kernels::convert.bind(DeviceKind::cpu, &convert) &&
                   kernels::accumulate.bind(DeviceKind::cpu, &accumulate) &&
                   kernels::copy_runs.bind(DeviceKind::cpu, &copy_runs);

}  // namespace
}  // namespace engram::cpu
