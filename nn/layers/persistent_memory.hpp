#pragma once
/// Key and value vectors that every position of every text can attend to: what a feed-forward sublayer becomes when it
/// is written as attention. Sukhbaatar et al.: "Augmenting Self-attention with Persistent Memory" (2019), section 4.2.

#include "nn/layers/attention_trace.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

class PersistentMemory final : public Module {
 public:
  /// N slots of depth D for each of H heads. Stored are K' and V' with variances 1/D and 1/N; the effective vectors are
  /// sqrt(D) K' and sqrt(N) V'. In the score q . sqrt(D) K' / sqrt(D) the factors cancel, so keys are used as stored
  /// with score scale 1, values with scale sqrt(N).
  PersistentMemory(std::int64_t heads, std::int64_t slots, std::int64_t depth);

  /// Puts the slots beside the context of an attention call: one softmax for both.
  void join(Tape& tape, AttentionVariables& in, AttentionOptions& options);
  /// Attention to the slots alone, in a softmax of their own. query: [B, M, H D] -> [B, M, H D]; dropout in [0, 1) on
  /// the weights; keep_bytes: as attention() has it. Fills the slots of `trace`, if one is given.
  Variable attend(const Variable& query, double dropout, std::int64_t keep_bytes, AttentionTrace* trace);
  void visit(Visitor& visit) override;

 private:
  Parameter keys_, values_;  // [H, N, D]
};

}  // namespace engram
