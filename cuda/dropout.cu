#include "core/kernels/dropout.hpp"

#include "cuda/elements.cuh"

namespace engram::cuda::dropout_kernels {
namespace {

template <class T>
struct Dropout {
  const T* x;
  RandomStream random;
  DropoutRule rule;
  TargetElements<T> y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    apply<kWidth>(i, i);
  }
  /// Elements i, ..., i + kWidth - 1 by the numbers `element`, ... of the random stream: one Philox block decides for
  /// the eight elements that a thread has.
  template <int kWidth>
  __device__ __forceinline__ void apply(std::int64_t i, std::int64_t element) const {
    const auto block = static_cast<std::uint64_t>(element) / DropoutRule::kElementsPerBlock;
    const int first = static_cast<int>(element % DropoutRule::kElementsPerBlock);
    const PhiloxBlock bits = random.draw(block);
    constexpr int kPack = kWidth < kPackWidth<T> ? kWidth : kPackWidth<T>;
    const auto multiplier = static_cast<Compute<T>>(rule.multiplier);
    for (int part = 0; part < kWidth; part += kPack) {
      Pack<Compute<T>, kPack> out = load<kPack>(x + i + part);
      // A dropped element is 0 even where x is infinite.
      for (int j = 0; j < kPack; ++j)
        out.value[j] = rule.keeps(bits, first + part + j) ? out.value[j] * multiplier : Compute<T>(0);
      write_pack(y, i + part, out);
    }
  }
};

void dropout(Step& step, const Tensor& x, RandomStream random, DropoutRule rule, const Target& y) {
  dispatch_storage(x.dtype(), "dropout", [&]<class T>() {
    const Dropout<T> body{x.data<const T>(), random, rule, y};
    if (aligned_for_packs(body.x, body.y.data))
      launch_elements<DropoutRule::kElementsPerBlock>(step, x.count(), body);
    else
      launch_elements<1>(step, x.count(), body);
  });
}

template <class T>
struct VariationalDropout {
  Dropout<T> of_stream;  // whose element numbers are those of the mask
  std::int64_t times, n;

  /// Elements i, ..., i + kWidth - 1 are of one row; they use the bits of one Philox block.
  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    of_stream.template apply<kWidth>(i, i / (times * n) * n + i % n);
  }
};

void variational_dropout(Step& step, const Tensor& x, RandomStream random, DropoutRule rule, const Target& y) {
  dispatch_storage(x.dtype(), "variational_dropout", [&]<class T>() {
    const VariationalDropout<T> body{{x.data<const T>(), random, rule, y}, x.shape()[1], x.shape()[2]};
    const bool in_packs = body.n % DropoutRule::kElementsPerBlock == 0;
    if (in_packs && aligned_for_packs(body.of_stream.x, body.of_stream.y.data))
      launch_elements<DropoutRule::kElementsPerBlock>(step, x.count(), body);
    else
      launch_elements<1>(step, x.count(), body);
  });
}

template <class T>
struct WordDropout {
  const T* x;
  const std::int32_t* id;
  std::int64_t n;
  RandomStream random;
  DropoutRule rule;
  TargetElements<T> y;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const auto element = static_cast<std::uint64_t>(id[i / n]);
    const PhiloxBlock bits = random.draw(element / DropoutRule::kElementsPerBlock);
    const bool kept = rule.keeps(bits, static_cast<int>(element % DropoutRule::kElementsPerBlock));
    Pack<Compute<T>, kWidth> out = load<kWidth>(x + i);
    for (int j = 0; j < kWidth; ++j)
      out.value[j] = kept ? out.value[j] * static_cast<Compute<T>>(rule.multiplier) : Compute<T>(0);
    write_pack(y, i, out);
  }
};

void word_dropout(Step& step, const Tensor& x, const Tensor& id, RandomStream random, DropoutRule rule,
                  const Target& y) {
  dispatch_storage(x.dtype(), "word_dropout", [&]<class T>() {
    const WordDropout<T> body{x.data<const T>(), id.data<const std::int32_t>(), x.shape()[1], random, rule, y};
    for_each_element<T>(step, x.count(), aligned_for_packs(body.x, body.y.data) && body.n % kPackWidth<T> == 0, body);
  });
}

const bool bound = kernels::dropout.bind(kThisDevice, &dropout) &&
                   kernels::variational_dropout.bind(kThisDevice, &variational_dropout) &&
                   kernels::word_dropout.bind(kThisDevice, &word_dropout);

}  // namespace
}  // namespace engram::cuda::dropout_kernels
