#include "apps/run/model/block_tensors.hpp"

namespace engram {

BlockTokens tokens_of(const data::Block& block) {
  return {.inputs = block.inputs,
          .targets = block.targets,
          .preceding = block.preceding,
          .scored = block.scored_count == static_cast<std::int64_t>(block.scored.size())
                        ? std::span<const std::uint8_t>()
                        : block.scored,
          .length = block.length,
          .context = block.context,
          .fed_again = block.fed_again};
}

void BlockTensors::write(const BlockTokens& block, std::int64_t pieces, const VocabularyClusters* clusters,
                         Backend& backend, Allocator& allocator, DType losses) {
  length_ = block.length;
  context_ = block.context;
  fed_again_ = block.fed_again;
  const auto tokens = static_cast<std::int64_t>(block.inputs.size());
  rows_of_piece_ = tokens / length_ / pieces;
  has_targets_ = !block.targets.empty();
  has_preceding_ = !block.preceding.empty();
  all_count_ = block.scored.empty();
  const auto put = [&](auto values, std::int64_t room, Tensor& tensor, DType dtype = DType::i32) {
    if (!tensor || tensor.count() < room || tensor.dtype() != dtype)
      tensor = Tensor({room}, dtype, backend.device(), allocator);
    backend.copy(tensor.raw(), values.data(), values.size_bytes(), CopyKind::host_to_device);
  };
  put(block.inputs, tokens, inputs_);
  if (has_targets_) put(block.targets, tokens, targets_);
  if (has_preceding_) put(block.preceding, tokens, preceding_);
  if (!all_count_)
    dispatch_float(losses, "block", [&]<class T>() {
      const std::vector<T> counts(block.scored.begin(), block.scored.end());
      put(std::span<const T>(counts), tokens, scored_, losses);
    });
  if (clusters == nullptr) {
    partitions_.clear();
    return;
  }
  partitions_.resize(static_cast<std::size_t>(pieces));
  lists_.resize(partitions_.size());
  for (std::size_t i = 0; i < partitions_.size(); ++i) {
    const auto part = [&](std::span<const std::int32_t> all, std::int64_t columns) {
      const auto count = static_cast<std::size_t>(rows_of_piece_ * columns);
      return all.empty() ? all : all.subspan(i * count, count);
    };
    partitions_[i].assign(*clusters, part(block.inputs, length_), part(block.targets, scored()),
                          backend.works_behind());
    // Room for every block of this size: steps that were captured go on reading there.
    put(partitions_[i].values(), TokenPartition::most_values(*clusters, rows_of_piece_ * length_), lists_[i]);
  }
}

TokenBatch BlockTensors::batch_of(const BlockTokens& block, const PlacedModel& placed) {
  write(block, 1, placed.model.tokens().clusters(), placed.runtime.backend(), placed.runtime.memory(), placed.dtype);
  return piece(0);
}

TokenBatch BlockTensors::piece(std::int64_t index) const {
  const auto rows_of = [&](const Tensor& tensor, std::int64_t columns) {
    return tensor.rows(index * rows_of_piece_ * columns, (index + 1) * rows_of_piece_ * columns);
  };
  TokenBatch batch{.inputs = rows_of(inputs_, length_).view({rows_of_piece_, length_}),
                   .targets = has_targets_ ? rows_of(targets_, scored()) : Tensor(),
                   .partition = nullptr,
                   .lists = {},
                   .context = context_,
                   .fed_again = fed_again_,
                   .preceding = {},
                   .scored = {}};
  if (has_preceding_) batch.preceding = rows_of(preceding_, length_).view({rows_of_piece_, length_});
  if (!all_count_) batch.scored = rows_of(scored_, scored());
  if (!partitions_.empty()) {
    batch.partition = &partitions_[static_cast<std::size_t>(index)];
    batch.lists = lists_[static_cast<std::size_t>(index)];
  }
  return batch;
}

void BlockTensors::append_state(std::vector<std::int64_t>& state) const {
  state.insert(state.end(), {length_, context_, fed_again_, has_preceding_, all_count_});
  // A block that is longer than all before it moves them.
  const auto append_place = [&state](const Tensor& tensor) {
    state.push_back(tensor ? static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(tensor.raw())) : 0);
  };
  for (const Tensor* tensor : {&inputs_, &targets_, &preceding_, &scored_}) append_place(*tensor);
  for (const Tensor& list : lists_) append_place(list);
  for (const TokenPartition& partition : partitions_) partition.append_counts(state);
}

}  // namespace engram
