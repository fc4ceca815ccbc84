#include "core/kernels/dropout.hpp"

#include "cuda/elements.cuh"

namespace engram::cuda {
namespace {

template <class T>
struct Dropout {
  const T* x;
  RandomStream random;
  DropoutRule rule;
  T* y;
  Write write;

  /// One Philox block decides for the eight elements that a thread has.
  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const auto block = static_cast<std::uint64_t>(i) / DropoutRule::kElementsPerBlock;
    const int first = static_cast<int>(i % DropoutRule::kElementsPerBlock);
    const PhiloxBlock bits = random.draw(block);
    constexpr int kPack = kWidth < kPackWidth<T> ? kWidth : kPackWidth<T>;
    const auto multiplier = static_cast<Compute<T>>(rule.multiplier);
    for (int part = 0; part < kWidth; part += kPack) {
      Pack<Compute<T>, kPack> out = load<kPack>(x + i + part);
      // A dropped element is 0 even where x is infinite.
      for (int j = 0; j < kPack; ++j)
        out.value[j] = rule.keeps(bits, first + part + j) ? out.value[j] * multiplier : Compute<T>(0);
      write_pack(y + i + part, out, write);
    }
  }
};

void dropout(Step& step, const Tensor& x, RandomStream random, DropoutRule rule, Tensor& y, Write write) {
  dispatch_storage(x.dtype(), "dropout", [&]<class T>() {
    const Dropout<T> body{x.data<const T>(), random, rule, y.data<T>(), write};
    if (aligned_for_packs(body.x, body.y))
      launch_elements<DropoutRule::kElementsPerBlock>(step, x.count(), body);
    else
      launch_elements<1>(step, x.count(), body);
  });
}

const bool bound = kernels::dropout.bind(kThisDevice, &dropout);

}  // namespace
}  // namespace engram::cuda
