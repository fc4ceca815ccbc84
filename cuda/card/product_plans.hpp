#pragma once
/// Products by cuBLASLt. What the library plans for a product, the algorithm included, is kept by the product's shape.

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>

namespace engram::card {

/// A product of a batch of matrices in the library's terms: column-major, c[m, n] = factor op(a)[m, k] op(b)[k, n] +
/// (add ? c : 0), leading dimensions and strides in elements.
struct LibraryProduct {
  cudaDataType_t in = CUDA_R_32F, out = CUDA_R_32F;
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  bool transpose_a = false, transpose_b = false;
  std::int64_t a_leading = 0, b_leading = 0, c_leading = 0;
  std::int64_t a_stride = 0, b_stride = 0, c_stride = 0;
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
  double factor = 1;
  bool add = false;
};

class ProductPlans {
 public:
  /// All products run in the order of the stream and share one workspace. Throws DeviceError.
  explicit ProductPlans(cudaStream_t stream);
  ~ProductPlans();
  ProductPlans(const ProductPlans&) = delete;
  ProductPlans& operator=(const ProductPlans&) = delete;

  /// Throws DeviceError when the library has no algorithm for it.
  void multiply(const LibraryProduct& product);

 private:
  struct Plan;
  using Key = std::array<std::int64_t, 18>;
  static Key key_of(const LibraryProduct& product);
  const Plan& plan_of(const LibraryProduct& product);

  cudaStream_t stream_;
  cublasLtHandle_t library_ = nullptr;
  void* workspace_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace engram::card
