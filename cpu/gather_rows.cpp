#include "core/kernels/gather_rows.hpp"

#include <cassert>

#include "cpu/vec.hpp"
#include "cpu/zero_if_set.hpp"

namespace engram::cpu {
namespace {

void gather_rows(Step&, const Tensor& table, const Tensor& index, double factor, Tensor& y) {
  dispatch_float(table.dtype(), "gather_rows", [&]<class T>() {
    const std::int64_t n = table.shape()[-1];
    const T* from = table.data<const T>();
    const std::int32_t* ids = index.data<const std::int32_t>();
    T* out = y.data<T>();
    const T scale = static_cast<T>(factor);
    parallel_chunks(index.count(), row_chunk(n), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        assert(ids[r] >= 0 && ids[r] < table.shape()[0]);
        vec(out + r * n, n) = vec(from + ids[r] * n, n) * scale;
      }
    });
  });
}

void scatter_rows(Step&, const Tensor& dy, const Tensor& index, double factor, const Target& dtable) {
  dispatch_float(dtable.tensor.dtype(), "scatter_rows", [&]<class T>() {
    const std::int64_t n = dtable.tensor.shape()[-1];
    const std::int64_t rows = index.count();
    const T* gradient = dy.data<const T>();
    const std::int32_t* ids = index.data<const std::int32_t>();
    T* out = dtable.data<T>();
    const T scale = static_cast<T>(factor);
    zero_if_set<T>(dtable);
    // Several rows may go to one place, so threads divide the columns: the order of additions is that of r.
    constexpr std::int64_t kColumns = 64;
    parallel_chunks(n, kColumns, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = 0; r < rows; ++r) {
        assert(ids[r] >= 0 && ids[r] < dtable.tensor.shape()[0]);
        vec(out + ids[r] * n + begin, end - begin) += vec(gradient + r * n + begin, end - begin) * scale;
      }
    });
  });
}

const bool bound = kernels::gather_rows.bind(DeviceKind::cpu, &gather_rows) &&
                   kernels::scatter_rows.bind(DeviceKind::cpu, &scatter_rows);

}  // namespace
}  // namespace engram::cpu
