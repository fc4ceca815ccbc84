#pragma once
/// Key and value vectors that every position of every text can attend to: what a feed-forward sublayer becomes when it
/// is written as attention. Sukhbaatar et al.: "Augmenting Self-attention with Persistent Memory" (2019), section 3.2.

#include "autograd/variable.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

class PersistentMemory final : public Module {
 public:
  /// N slots of depth D for each of H heads. Stored are K' and V' with variances 1/D and 1/N; the effective vectors are
  /// sqrt(D) K' and sqrt(N) V'. In the score q . sqrt(D) K' / sqrt(D) the factors cancel, so keys are used as stored
  /// with score scale 1, values with the scale below.
  PersistentMemory(std::int64_t heads, std::int64_t slots, std::int64_t depth);

  Variable keys(Tape& tape);    ///< [H, N, D]
  Variable values(Tape& tape);  ///< [H, N, D]
  double value_scale() const;   ///< sqrt(N)
  void visit(Visitor& visit) override;

 private:
  Parameter keys_, values_;
};

}  // namespace engram
