#pragma once
/// The figure that models are compared by, the smaller the better: bits per character, or the perplexity of words.

#include <cmath>
#include <numbers>
#include <string_view>

#include "apps/data/token_kind.hpp"
#include "apps/training/evaluator.hpp"

namespace engram {

/// "bpc" or "ppl".
inline std::string_view score_name(data::TokenKind kind) { return kind == data::TokenKind::word ? "ppl" : "bpc"; }
/// Of a mean loss in nats per token.
inline double score_of(data::TokenKind kind, double nll) {
  return kind == data::TokenKind::word ? std::exp(nll) : nll / std::numbers::ln2;
}
inline double score_of(data::TokenKind kind, const Evaluation& evaluation) { return score_of(kind, evaluation.nll()); }

}  // namespace engram
