#include "core/kernels/dropout.hpp"

#include "cpu/dropout_bits.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

void dropout(Step&, const Tensor& x, RandomStream random, DropoutRule rule, Tensor& y, Write write) {
  dispatch_float(x.dtype(), "dropout", [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(x.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      constexpr std::int64_t kPiece = 1024;  // multipliers that stay in the first cache
      T multipliers[kPiece];
      for (std::int64_t first = begin; first < end; first += kPiece) {
        const std::int64_t count = std::min(kPiece, end - first);
        dropout_multipliers(random, rule, static_cast<std::uint64_t>(first), count, multipliers);
        // A dropped element is 0 even where x is infinite. The product is taken in any case, which the compiler needs
        // to see before it makes vectors of the choice.
        const auto value = [&](std::int64_t i) {
          const T product = in[first + i] * multipliers[i];
          return multipliers[i] > T(0) ? product : T(0);
        };
        if (write == Write::add)
          for (std::int64_t i = 0; i < count; ++i) out[first + i] += value(i);
        else
          for (std::int64_t i = 0; i < count; ++i) out[first + i] = value(i);
      }
    });
  });
}

const bool bound = kernels::dropout.bind(DeviceKind::cpu, &dropout);

}  // namespace
}  // namespace engram::cpu
