#pragma once
/// A mean loss as people compare it: bits per character for characters, perplexities for words ([all-attention 7.4])
/// and subwords, and what does not depend on the tokens, for every kind ([product-key 6]).

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "apps/data/data_set.hpp"
#include "apps/data/files/token_view.hpp"
#include "apps/data/vocabulary/token_kind.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram {

/// Nats per target. Papers on WikiText-103 differ in whether line ends count as targets, so both means are reported.
struct MeanLoss {
  double all = 0;
  std::optional<double> no_eol;  ///< over the targets that are no line ends; none for characters, or if line ends are
                                 ///< no tokens
  /// Over the targets that do not begin a sentence, where every sentence has a mark before and after it; else none.
  std::optional<double> no_certain_marks = {};
};

/// Adds up the losses of some of the targets of a split.
class PartialLoss {
 public:
  /// Targets that are no line ends; none for characters. The tokens must outlive it.
  static PartialLoss without_ends(data::TokenView tokens, const data::Vocabulary& vocabulary);
  /// Targets that are not a second mark after one (DataSet::doubled_mark); none where that is -1.
  static PartialLoss without_certain_marks(data::TokenView tokens, std::int32_t doubled_mark);

  /// `token`: the target's place in the split; `nll` in nats. As TokenLoss of evaluator.hpp.
  void add(std::int64_t token, double nll);
  /// None before the first target that counts.
  std::optional<double> mean() const;

 private:
  PartialLoss(data::TokenView tokens, std::int32_t left_out, bool only_doubled)
      : tokens_(tokens), left_out_(left_out), only_doubled_(only_doubled) {}

  data::TokenView tokens_;
  std::int32_t left_out_;  // -1: nothing is added up
  bool only_doubled_;      // left out after itself only
  double sum_ = 0;
  std::int64_t count_ = 0;
};

/// Characters: {"nll", "bpc"}. Words: {"nll", "bits", "ppl"} and, where there are line ends, "ppl_no_eol"; ppl is
/// exp(nll). With sentence marks "ppl_no_certain_marks". Subwords: {"nll", "bits", "ppl_bpe"}.
nlohmann::json loss_json(data::TokenKind kind, const MeanLoss& loss);
/// "bpc 1.5756"; "ppl 60.31" or "ppl 60.31 ppl_no_eol 71.13"; "ppl_bpe 42.1".
std::string loss_text(data::TokenKind kind, const MeanLoss& loss);

/// The loss of a text whose tokens are forgotten: models with different tokens may be compared by it.
struct TextLoss {
  /// Of a split of so many tokens and of this text, `nll` being the mean in nats of those that were scored. Where a few
  /// were not, the mean stands for them too.
  TextLoss(const data::TextAmount& text, std::int64_t tokens, double nll);

  std::optional<double> ppl_word;       ///< exp(nll of the split / its words); none without words
  std::optional<double> bits_per_byte;  ///< none where the tokens leave some of the text out
};
/// Words of this text for each of its so many tokens.
double words_in(const data::TextAmount& text, std::int64_t tokens);
/// {"words_in_split", "bytes_in_split"} and what TextLoss has: {"ppl_word", "bits_per_byte"}.
nlohmann::json amount_json(const data::TextAmount& text, std::int64_t tokens, double nll);

}  // namespace engram
