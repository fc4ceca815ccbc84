#include "cuda/card/product_plans.hpp"

#include <algorithm>

#include "cuda/card/check.hpp"
#include "cuda/card/cublas_lt.hpp"

namespace engram::card {
namespace {

/// What NVIDIA recommends for cards since compute capability 9.0.
constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

void check(cublasStatus_t code, const char* what) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(text("matmul: ", what, " must succeed, got: ", cublas_lt().GetStatusString(code), " (",
                         cublas_lt().GetStatusName(code), ")"));
}

/// The largest power of two up to 256 that divides an address.
std::uint32_t alignment_of(const void* data) {
  std::uint32_t alignment = 256;
  while (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) alignment /= 2;
  return alignment;
}

/// A matrix's layout in memory.
class Layout {
 public:
  Layout(cudaDataType_t type, std::int64_t rows, std::int64_t columns, std::int64_t leading, std::int64_t batch,
         std::int64_t stride) {
    check(cublas_lt().MatrixLayoutCreate(&layout_, type, static_cast<std::uint64_t>(rows),
                                         static_cast<std::uint64_t>(columns), leading),
          "a layout");
    const auto count = static_cast<std::int32_t>(batch);
    check(cublas_lt().MatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "a layout");
    check(cublas_lt().MatrixLayoutSetAttribute(layout_, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
                                               sizeof stride),
          "a layout");
  }
  ~Layout() { (void)cublas_lt().MatrixLayoutDestroy(layout_); }
  Layout(const Layout&) = delete;
  Layout& operator=(const Layout&) = delete;
  operator cublasLtMatrixLayout_t() const { return layout_; }

 private:
  cublasLtMatrixLayout_t layout_ = nullptr;
};

class Operation {
 public:
  Operation(cublasComputeType_t compute, cudaDataType_t factor_type, bool transpose_a, bool transpose_b) {
    check(cublas_lt().MatmulDescCreate(&operation_, compute, factor_type), "an operation");
    const auto set = [this](cublasLtMatmulDescAttributes_t attribute, bool transpose) {
      const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
      check(cublas_lt().MatmulDescSetAttribute(operation_, attribute, &operation, sizeof operation), "an operation");
    };
    set(CUBLASLT_MATMUL_DESC_TRANSA, transpose_a);
    set(CUBLASLT_MATMUL_DESC_TRANSB, transpose_b);
  }
  ~Operation() { (void)cublas_lt().MatmulDescDestroy(operation_); }
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  operator cublasLtMatmulDesc_t() const { return operation_; }

 private:
  cublasLtMatmulDesc_t operation_ = nullptr;
};

class Preference {
 public:
  Preference() { check(cublas_lt().MatmulPreferenceCreate(&preference_), "a preference"); }
  ~Preference() { (void)cublas_lt().MatmulPreferenceDestroy(preference_); }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  template <class T>
  void set(cublasLtMatmulPreferenceAttributes_t attribute, T value) {
    check(cublas_lt().MatmulPreferenceSetAttribute(preference_, attribute, &value, sizeof value), "a preference");
  }
  operator cublasLtMatmulPreference_t() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

bool is_f64(const LibraryProduct& p) { return p.in == CUDA_R_64F; }

}  // namespace

struct ProductPlans::Plan {
  Operation operation;
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm{};

  explicit Plan(const LibraryProduct& p)
      // Sums of f32 in f32, never in the shorter numbers that tensor cores take f32 for.
      : operation(is_f64(p) ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, is_f64(p) ? CUDA_R_64F : CUDA_R_32F,
                  p.transpose_a, p.transpose_b),
        a(p.in, p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k, p.a_leading, p.batch, p.a_stride),
        b(p.in, p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n, p.b_leading, p.batch, p.b_stride),
        c(p.out, p.m, p.n, p.c_leading, p.batch, p.c_stride) {}
};

ProductPlans::ProductPlans(cudaStream_t stream) : stream_(stream) {
  check(cublas_lt().Create(&library_), "opening cuBLASLt");
  check(cudaMalloc(&workspace_, kWorkspaceBytes), "memory for cuBLASLt");
}

ProductPlans::~ProductPlans() {
  (void)cudaFree(workspace_);
  (void)cublas_lt().Destroy(library_);
}

ProductPlans::Key ProductPlans::key_of(const LibraryProduct& p) {
  return {p.in,
          p.out,
          p.m,
          p.n,
          p.k,
          p.batch,
          p.transpose_a,
          p.transpose_b,
          p.a_leading,
          p.b_leading,
          p.c_leading,
          p.a_stride,
          p.b_stride,
          p.c_stride,
          alignment_of(p.a),
          alignment_of(p.b),
          alignment_of(p.c),
          p.add};
}

const ProductPlans::Plan& ProductPlans::plan_of(const LibraryProduct& p) {
  std::unique_ptr<Plan>& kept = plans_[key_of(p)];
  if (kept != nullptr) return *kept;
  auto plan = std::make_unique<Plan>(p);
  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(p.a));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(p.b));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment_of(p.c));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment_of(p.c));
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const cublasStatus_t code = cublas_lt().MatmulAlgoGetHeuristic(library_, plan->operation, plan->a, plan->b, plan->c,
                                                                 plan->c, preference, 1, &result, &found);
  if (code != CUBLAS_STATUS_NOT_SUPPORTED) check(code, "choosing an algorithm");
  if (found == 0)
    throw DeviceError(text("matmul: cuBLASLt must have an algorithm for [", p.n, ", ", p.k, "] times [", p.k, ", ", p.m,
                           "], ", p.batch, " of them, with strides ", p.b_leading, ", ", p.a_leading, " and ",
                           p.c_leading, ", got none"));
  plan->algorithm = result.algo;
  kept = std::move(plan);
  return *kept;
}

void ProductPlans::multiply(const LibraryProduct& p) {
  const Plan& plan = plan_of(p);
  const auto f32_factor = static_cast<float>(p.factor), f32_share = p.add ? 1.0f : 0.0f;
  const double f64_share = p.add ? 1 : 0;
  const void* const factor = is_f64(p) ? static_cast<const void*>(&p.factor) : &f32_factor;
  const void* const share = is_f64(p) ? static_cast<const void*>(&f64_share) : &f32_share;
  check(cublas_lt().Matmul(library_, plan.operation, factor, p.a, plan.a, p.b, plan.b, share, p.c, plan.c, p.c, plan.c,
                           &plan.algorithm, workspace_, kWorkspaceBytes, stream_),
        "a product");
}

}  // namespace engram::card
