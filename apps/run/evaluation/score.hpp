#pragma once
/// The figure that models of one data set are compared by, the smaller the better: bits per character, or the
/// perplexity of words or subwords.

#include <cmath>
#include <numbers>
#include <string_view>

#include "apps/data/vocabulary/token_kind.hpp"
#include "apps/run/evaluation/evaluator.hpp"

namespace engram {

/// "bpc", "ppl", or for subwords "ppl_bpe", which says that it is no perplexity of words.
inline std::string_view score_name(data::TokenKind kind) {
  return kind == data::TokenKind::character ? "bpc" : kind == data::TokenKind::word ? "ppl" : "ppl_bpe";
}
/// Of a mean loss in nats per token.
inline double score_of(data::TokenKind kind, double nll) {
  return kind == data::TokenKind::character ? nll / std::numbers::ln2 : std::exp(nll);
}
inline double score_of(data::TokenKind kind, const Evaluation& evaluation) { return score_of(kind, evaluation.nll()); }

}  // namespace engram
