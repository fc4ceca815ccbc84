#include "core/kernels/window_rows.hpp"

#include "cpu/window_products.hpp"
#include "cpu/window_softmax.hpp"

namespace engram::cpu {
namespace {

/// The rows of one sum and their weights, in the scratch memory of a thread.
template <class T>
class WeightedRowList {
 public:
  static std::size_t bytes(std::int64_t most) { return static_cast<std::size_t>(most) * (sizeof(T*) + sizeof(T)); }
  WeightedRowList(std::byte* memory, std::int64_t most)
      : rows_(reinterpret_cast<const T**>(memory)),
        weights_(reinterpret_cast<T*>(memory + static_cast<std::size_t>(most) * sizeof(T*))) {}

  void add(const T* row, T weight) {
    rows_[count_] = row;
    weights_[count_++] = weight;
  }
  void sum(T* to, std::int64_t width) const { sum_weighted_rows(rows_, weights_, count_, to, width); }

 private:
  const T** rows_;
  T* weights_;
  std::int64_t count_ = 0;
};

/// Calls body(row, terms, result) for every row of a result [rows, width] in turn. The body adds up to `most` terms to
/// the list; the result is then their sum.
template <class T, class Body>
void sum_lists(Step& step, std::int64_t rows, std::int64_t width, std::int64_t most, T* result, Write write,
               Body&& body) {
  const auto in_lines = [](std::size_t bytes) { return (bytes + 63) / 64 * 64; };
  const std::size_t for_list = in_lines(WeightedRowList<T>::bytes(most));
  const std::size_t per_thread = for_list + in_lines(static_cast<std::size_t>(width) * sizeof(T));
  const Workspace memory = step.workspace(per_thread * static_cast<std::size_t>(max_threads()));
  if (!step.computes()) return;
  const std::int64_t chunk = row_chunk(width * (1 + most));
  parallel_items_on_threads((rows + chunk - 1) / chunk, [&](std::int64_t item, int thread) {
    std::byte* const scratch = memory.data<std::byte>() + per_thread * static_cast<std::size_t>(thread);
    T* const sum = reinterpret_cast<T*>(scratch + for_list);
    for (std::int64_t row = item * chunk; row < std::min(rows, (item + 1) * chunk); ++row) {
      WeightedRowList<T> terms(scratch, most);
      body(row, terms);
      T* const to = result + row * width;
      if (write == Write::set) {
        terms.sum(to, width);
      } else {
        terms.sum(sum, width);
        for (std::int64_t i = 0; i < width; ++i) to[i] += sum[i];
      }
    }
  });
}

void window_sums(Step& step, const Tensor& weights, const Tensor& rows, const Tensor& position_rows,
                 const Tensor& preceding, const WindowRule& rule, const Target& y) {
  dispatch_float(y.tensor.dtype(), "window_sums", [&]<class T>() {
    const std::int64_t width = y.tensor.shape()[2], window = rule.window;
    const T* const values = rows.data<const T>();
    const T* const positions = position_rows ? position_rows.data<const T>() : nullptr;
    const T* const shares = weights.data<const T>();
    const std::int32_t* const before = preceding.data<const std::int32_t>();
    const std::int64_t most = std::min(window, rule.rows()) * (positions != nullptr ? 2 : 1);
    sum_lists(step, y.tensor.shape()[0] * rule.block, width, most, y.data<T>(), y.write,
              [&](std::int64_t place, WeightedRowList<T>& terms) {
                const std::int64_t b = place / rule.block, t = place % rule.block;
                const std::int64_t seen = rule.seen(t, before[place]);
                const T* const first = values + (b * rule.rows() + rule.end(t) - seen) * width;
                for (std::int64_t j = 0; j < seen; ++j)
                  terms.add(first + j * width, shares[place * window + window - seen + j]);
                if (positions == nullptr) return;
                for (std::int64_t c = window - seen; c < window; ++c)
                  terms.add(positions + c * width, shares[place * window + c]);
              });
  });
}

void window_row_gradients(Step& step, const Tensor& weights, const Tensor& dy, const Tensor& preceding,
                          const WindowRule& rule, const Target& drows) {
  dispatch_float(dy.dtype(), "window_row_gradients", [&]<class T>() {
    const std::int64_t width = dy.shape()[2];
    const T* const gradients = dy.data<const T>();
    const T* const shares = weights.data<const T>();
    const std::int32_t* const before = preceding.data<const std::int32_t>();
    sum_lists(step, dy.shape()[0] * rule.rows(), width, std::min(rule.window, rule.block), drows.data<T>(), drows.write,
              [&](std::int64_t place, WeightedRowList<T>& terms) {
                const std::int64_t b = place / rule.rows(), row = place % rule.rows();
                for (std::int64_t t = rule.first_reader(row); t < rule.end_of_readers(row); ++t) {
                  const std::int64_t reader = b * rule.block + t;
                  if (row < rule.end(t) - rule.seen(t, before[reader])) continue;
                  terms.add(gradients + reader * width, shares[reader * rule.window + rule.column(t, row)]);
                }
              });
  });
}

void window_score_gradients(Step&, const Tensor& weights, const Tensor& rows, const Tensor& position_rows,
                            const Tensor& dy, const Tensor& preceding, const WindowRule& rule, Tensor& dscores) {
  dispatch_float(dy.dtype(), "window_score_gradients", [&]<class T>() {
    const std::int64_t window = rule.window;
    const T* const shares = weights.data<const T>();
    T* const result = dscores.data<T>();
    for_window_products<T>(rows, position_rows, dy, preceding, rule, result,
                           [=, &rule](std::int64_t place, std::int64_t seen) {
                             window_softmax_gradient(shares + place * window, result + place * window, window,
                                                     counted_columns(rule, seen));
                           });
  });
}

const bool bound =
    kernels::window_sums.bind(DeviceKind::cpu, &window_sums, KernelMemory::workspace) &&
    kernels::window_row_gradients.bind(DeviceKind::cpu, &window_row_gradients, KernelMemory::workspace) &&
    kernels::window_score_gradients.bind(DeviceKind::cpu, &window_score_gradients);

}  // namespace
}  // namespace engram::cpu
