#pragma once
/// Losses beside the next token's, which deep vanilla Transformers are trained with: [transformer-xl 4.5]. Al-Rfou et
/// al.: "Character-Level Language Modeling with Deeper Self-Attention" (2019).

#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "nn/layers/linear.hpp"
#include "nn/layers/token_io.hpp"

namespace engram {

struct AuxiliaryOptions {
  std::int64_t vocabulary = 0;  ///< V
  std::int64_t width = 0;       ///< D
  std::int64_t layers = 0;      ///< n
  bool intermediate = false;    ///< layers but the last predict too
  double second_target = 0;     ///< weight of the prediction of the token after the next, 0 to 1; 0: none
  LinearStart start;

  bool any() const { return intermediate || second_target > 0; }
};

/// Classifiers that training alone uses, each a linear map of its own over all V tokens: of the next token behind every
/// layer but the last, and of the one after it behind all of these layers and the last one.
class AuxiliaryHeads final : public Module {
 public:
  explicit AuxiliaryHeads(const AuxiliaryOptions& options);

  /// The first layer, from 0, that still predicts when this share of the training, from 0 up to 1, is done: layer l of
  /// n, from 1, does so until l / 2n. n - 1: none but the last one does.
  std::int64_t first_layer(double progress) const;
  /// How many losses there are then, and at most.
  std::int64_t count(double progress) const;
  std::int64_t most() const { return count(0); }

  /// Those losses, for Tape::backward as they are: each target of the next token with `row_weight`, of the token after
  /// it with `second_target` times that. states: behind every layer, [B, M', D], of positions with targets; `last` is
  /// in the place of the last one. The last position of a block has no second target.
  std::pmr::vector<Variable> losses(std::span<const Variable> states, const Variable& last, const TokenBatch& batch,
                                    double row_weight, double progress);
  void visit(Visitor& visit) override;

 private:
  AuxiliaryOptions options_;
  std::vector<std::unique_ptr<Linear>> next_, second_;  // of layers; the last of `second_` is the last layer's
};

}  // namespace engram
