#include "apps/training/block_tensors.hpp"

namespace engram {

void BlockTensors::write(const BlockTokens& block, std::int64_t pieces, const VocabularyClusters* clusters,
                         Backend& backend, Allocator& allocator) {
  length = block.length;
  const auto tokens = static_cast<std::int64_t>(block.inputs.size());
  rows_of_piece_ = tokens / length / pieces;
  has_targets_ = !block.targets.empty();
  const auto put = [&](std::span<const std::int32_t> values, std::int64_t room, Tensor& tensor) {
    if (!tensor || tensor.count() < room) tensor = Tensor({room}, DType::i32, backend.device(), allocator);
    backend.copy(tensor.raw(), values.data(), values.size_bytes(), CopyKind::host_to_device);
  };
  put(block.inputs, tokens, inputs_);
  if (has_targets_) put(block.targets, tokens, targets_);
  if (clusters == nullptr) {
    partitions_.clear();
    return;
  }
  partitions_.resize(static_cast<std::size_t>(pieces));
  lists_.resize(partitions_.size());
  const auto piece_tokens = static_cast<std::size_t>(rows_of_piece_ * length);
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    const auto part = [&](std::span<const std::int32_t> all) {
      return all.empty() ? all : all.subspan(i * piece_tokens, piece_tokens);
    };
    partitions_[i].assign(*clusters, part(block.inputs), part(block.targets), backend.works_behind());
    // Room for every block of this size: steps that were captured go on reading there.
    put(partitions_[i].values(), TokenPartition::most_values(*clusters, rows_of_piece_ * length), lists_[i]);
  }
}

TokenBatch BlockTensors::piece(std::int64_t index) const {
  const std::int64_t begin = index * rows_of_piece_ * length, end = begin + rows_of_piece_ * length;
  TokenBatch batch{.inputs = inputs_.rows(begin, end).view({rows_of_piece_, length}),
                   .targets = has_targets_ ? targets_.rows(begin, end) : Tensor(),
                   .partition = nullptr,
                   .lists = {}};
  if (!partitions_.empty()) {
    batch.partition = &partitions_[static_cast<std::size_t>(index)];
    batch.lists = lists_[static_cast<std::size_t>(index)];
  }
  return batch;
}

void BlockTensors::append_state(std::vector<std::int64_t>& state) const {
  state.push_back(length);
  for (const TokenPartition& partition : partitions_) partition.append_counts(state);
}

}  // namespace engram
