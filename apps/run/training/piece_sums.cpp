#include "apps/run/training/piece_sums.hpp"

#include "core/kernels/copy.hpp"

namespace engram {

PieceSums::PieceSums(const std::vector<Tensor>& tensors, std::int64_t pieces, Allocator& allocator) {
  for (const Tensor& tensor : tensors) tensors_.push_back(tensor.view({tensor.count()}));
  // At most pieces - 1 are kept at a time.
  for (std::int64_t kept = pieces - 1; kept > 0; kept /= 2) {
    std::vector<Tensor>& level = waiting_.emplace_back();
    for (const Tensor& tensor : tensors_)
      level.emplace_back(tensor.shape(), tensor.dtype(), tensor.device(), allocator);
  }
}

void PieceSums::keep(Step& step) {
  std::size_t level = 0;
  for (; (kept_ >> level & 1) != 0; ++level)
    for (std::size_t i = 0; i < tensors_.size(); ++i)
      kernels::accumulate(step, waiting_[level][i], 1.0, {tensors_[i], Write::add});
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    kernels::accumulate(step, tensors_[i], 1.0, {waiting_[level][i], Write::set});
  ++kept_;
}

void PieceSums::finish(Step& step, std::size_t tensor, std::int64_t begin, std::int64_t end) const {
  if (begin == end) return;
  const Tensor sum = tensors_[tensor].rows(begin, end);
  for (std::size_t level = 0; level < waiting_.size(); ++level)
    if ((kept_ >> level & 1) != 0)
      kernels::accumulate(step, waiting_[level][tensor].rows(begin, end), 1.0, {sum, Write::add});
}

void PieceSums::finish(Step& step) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) finish(step, i, 0, tensors_[i].count());
}

}  // namespace engram
