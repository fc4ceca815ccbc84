#include "core/kernels/delayed_slices.hpp"

#include <algorithm>

#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

void delayed_slices_forward(Step&, const Tensor& x, const Tensor& preceding, const WindowRule& rule, Tensor& y) {
  dispatch_float(x.dtype(), "delayed_slices", [&]<class T>() {
    const std::int64_t width = x.shape()[2], part = width / rule.window;
    const T* const in = x.data<const T>();
    const std::int32_t* const before = preceding.data<const std::int32_t>();
    T* const out = y.data<T>();
    parallel_chunks(x.shape()[0] * rule.block, row_chunk(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place) {
        const std::int64_t b = place / rule.block, t = place % rule.block;
        const std::int64_t seen = rule.seen(t, before[place]);
        const T* const present = in + (b * rule.rows() + rule.carried + t) * width;
        T* const to = out + place * width;
        for (std::int64_t s = 0; s < seen; ++s) std::copy_n(present - s * width + s * part, part, to + s * part);
        std::fill(to + seen * part, to + width, T(0));
      }
    });
  });
}

void delayed_slices_backward(Step&, const Tensor& dy, const Tensor& preceding, const WindowRule& rule,
                             const Target& dx) {
  dispatch_float(dy.dtype(), "delayed_slices", [&]<class T>() {
    const std::int64_t width = dy.shape()[2], part = width / rule.window;
    const T* const gradients = dy.data<const T>();
    const std::int32_t* const before = preceding.data<const std::int32_t>();
    T* const out = dx.data<T>();
    parallel_chunks(dy.shape()[0] * rule.rows(), row_chunk(width), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place) {
        const std::int64_t b = place / rule.rows(), row = place % rule.rows();
        for (std::int64_t s = 0; s < rule.window; ++s) {
          const std::int64_t t = row - rule.carried + s, reader = b * rule.block + t;
          const bool was_read = t >= 0 && t < rule.block && s < rule.seen(t, before[reader]);
          const T* const from = gradients + reader * width + s * part;
          T* const to = out + place * width + s * part;
          if (dx.write == Write::set && !was_read) std::fill_n(to, part, T(0));
          if (dx.write == Write::set && was_read) std::copy_n(from, part, to);
          if (dx.write == Write::add && was_read)
            for (std::int64_t i = 0; i < part; ++i) to[i] += from[i];
        }
      }
    });
  });
}

const bool bound = kernels::delayed_slices_forward.bind(DeviceKind::cpu, &delayed_slices_forward) &&
                   kernels::delayed_slices_backward.bind(DeviceKind::cpu, &delayed_slices_backward);

}  // namespace
}  // namespace engram::cpu
