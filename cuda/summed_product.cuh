#pragma once
/// Products that are added up, without one launch for each: all of them at once into a workspace, then one kernel that
/// adds them in order, so that bits do not depend on the library.

#include "cuda/blas.hpp"
#include "cuda/elements.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// to[i] (set or add) the sum over b < batch of from[b count + i], in order of b.
template <class T>
struct SumOfBatch {
  const T* from;
  std::int64_t batch, count;
  T* to;
  Write write;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    Pack<T, kWidth> sum = load<kWidth>(from + i);
    for (std::int64_t b = 1; b < batch; ++b) {
      const Pack<T, kWidth> next = load<kWidth>(from + b * count + i);
      for (int j = 0; j < kWidth; ++j) sum.value[j] += next.value[j];
    }
    write_pack(to + i, sum, write);
  }
};

/// As multiply() with a batch stride of c of 0 and rows of c that follow each other. Takes a workspace of the size of
/// all products.
template <class T, class Out>
void multiply_summed(Step& step, const Product<T, Out>& product) {
  const std::int64_t count = product.m * product.n;
  const Workspace memory = step.workspace(sizeof(Out) * static_cast<std::size_t>(product.batch * count));
  Product<T, Out> apart = product;
  apart.write = Write::set;
  apart.c = memory.data<Out>();
  apart.batch_stride = count;
  multiply(step, apart);
  const bool in_packs = aligned_for_packs(apart.c, product.c) && count % kPackWidth<Out> == 0;
  for_each_element<Out>(step, count, in_packs,
                        SumOfBatch<Out>{apart.c, product.batch, count, product.c, product.write});
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
