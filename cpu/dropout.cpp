#include "core/kernels/dropout.hpp"

#include "cpu/dropout_bits.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

constexpr std::int64_t kPiece = 1024;  // multipliers that stay in the first cache

/// out[i] (set or add) in[i] multipliers[i]. A dropped element is 0 even where x is infinite. The product is taken in
/// any case, which the compiler needs to see before it makes vectors of the choice.
template <class T>
void apply(const T* in, const T* multipliers, std::int64_t count, T* out, Write write) {
  const auto value = [&](std::int64_t i) {
    const T product = in[i] * multipliers[i];
    return multipliers[i] > T(0) ? product : T(0);
  };
  if (write == Write::add)
    for (std::int64_t i = 0; i < count; ++i) out[i] += value(i);
  else
    for (std::int64_t i = 0; i < count; ++i) out[i] = value(i);
}

void dropout(Step&, const Tensor& x, RandomStream random, DropoutRule rule, const Target& y) {
  dispatch_float(x.dtype(), "dropout", [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(x.count(), kElementChunk, [&](std::int64_t begin, std::int64_t end) {
      T multipliers[kPiece];
      for (std::int64_t first = begin; first < end; first += kPiece) {
        const std::int64_t count = std::min(kPiece, end - first);
        dropout_multipliers(random, rule, static_cast<std::uint64_t>(first), count, multipliers);
        apply(in + first, multipliers, count, out + first, y.write);
      }
    });
  });
}

void variational_dropout(Step&, const Tensor& x, RandomStream random, DropoutRule rule, const Target& y) {
  dispatch_float(x.dtype(), "variational_dropout", [&]<class T>() {
    const std::int64_t times = x.shape()[1], n = x.shape()[2];
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(x.shape()[0] * times, row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      T multipliers[kPiece];
      for (std::int64_t first = 0; first < n; first += kPiece) {
        const std::int64_t count = std::min(kPiece, n - first);
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t stream = row / times;
          if (row == begin || row % times == 0)
            dropout_multipliers(random, rule, static_cast<std::uint64_t>(stream * n + first), count, multipliers);
          apply(in + row * n + first, multipliers, count, out + row * n + first, y.write);
        }
      }
    });
  });
}

void word_dropout(Step&, const Tensor& x, const Tensor& id, RandomStream random, DropoutRule rule, const Target& y) {
  dispatch_float(x.dtype(), "word_dropout", [&]<class T>() {
    const std::int64_t n = x.shape()[1];
    const std::int32_t* ids = id.data<const std::int32_t>();
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    parallel_chunks(x.shape()[0], row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const auto element = static_cast<std::uint64_t>(ids[row]);
        const PhiloxBlock bits = random.draw(element / DropoutRule::kElementsPerBlock);
        const bool kept = rule.keeps(bits, static_cast<int>(element % DropoutRule::kElementsPerBlock));
        const T multiplier = static_cast<T>(rule.multiplier);
        for (std::int64_t i = row * n; i < (row + 1) * n; ++i) {
          const T value = kept ? in[i] * multiplier : T(0);
          out[i] = y.write == Write::add ? out[i] + value : value;
        }
      }
    });
  });
}

const bool bound = kernels::dropout.bind(DeviceKind::cpu, &dropout) &&
                   kernels::variational_dropout.bind(DeviceKind::cpu, &variational_dropout) &&
                   kernels::word_dropout.bind(DeviceKind::cpu, &word_dropout);

}  // namespace
}  // namespace engram::cpu
