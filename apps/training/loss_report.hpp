#pragma once
/// A mean loss as people compare it: bits per character for characters, perplexities for words (spec section 7.4).

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "apps/data/token_kind.hpp"
#include "apps/data/token_view.hpp"
#include "apps/data/vocabulary.hpp"

namespace engram {

/// Nats per target. Papers on WikiText-103 differ in whether line ends count as targets, so both means are reported.
struct MeanLoss {
  double all = 0;
  std::optional<double> no_eol;  ///< over the targets that are no line ends; none for characters, or if line ends are
                                 ///< no tokens
};

/// Adds up the losses of the targets of a split that are no line ends.
class LossWithoutEnds {
 public:
  /// The tokens must outlive it.
  LossWithoutEnds(data::TokenView tokens, const data::Vocabulary& vocabulary);
  /// `token`: the target's place in the split; `nll` in nats. As TokenLoss of evaluator.hpp.
  void add(std::int64_t token, double nll);
  /// None for characters, without line ends among the tokens, and before the first target.
  std::optional<double> mean() const;

 private:
  data::TokenView tokens_;
  std::int32_t end_token_;  // -1: nothing is added up
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Characters: {"nll", "bpc"}. Words: {"nll", "bits", "ppl"} and, where there are line ends, "ppl_no_eol"; ppl is
/// exp(nll).
nlohmann::json loss_json(data::TokenKind kind, const MeanLoss& loss);
/// "bpc 1.5756"; "ppl 60.31" or "ppl 60.31 ppl_no_eol 71.13".
std::string loss_text(data::TokenKind kind, const MeanLoss& loss);

}  // namespace engram
