#pragma once
/// How likely a recurrent model finds a question's candidates ([key-value-predict 5.3]).

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/placed_model.hpp"
#include "apps/studies/cbt/question_tokens.hpp"
#include "nn/models/recurrent.hpp"

namespace engram {

/// What a score is made of.
enum class CandidateScore : std::uint8_t {
  whole,  ///< ln p of the candidate and of all that follows it in the query, with the end of the sentence
  word    ///< ln p of the candidate alone
};

/// ln p of every candidate, in the question's order. Candidates that are one token have one score, to the bit.
using CandidateScores = std::array<double, data::CbtQuestion::kCandidates>;

class QuestionScorer {
 public:
  /// `batch`: questions whose beginnings are read side by side; changes nothing but the speed (and last bits). `block`:
  /// tokens of a block of a model that depends on blocks (LanguageModel::depends_on_blocks); they count from the start
  /// of a question, and others do not look at it. Model and runtime must outlive the scorer.
  QuestionScorer(const Placed<RecurrentModel>& placed, CandidateScore score, std::int64_t batch, std::int64_t block);

  /// Every question from nothing. Questions of like length are read together, so many at once cost less than a few.
  /// Throws Error when a score is not finite. `watch` is told how many have their scores.
  std::vector<CandidateScores> operator()(std::span<const TokenQuestion> questions, const EvaluationWatch& watch = {});

 private:
  using Places = std::span<const std::size_t>;
  /// How much of a prefix is read once for all candidates: all but its last token, or the whole blocks of that.
  std::int64_t shared_tokens(const TokenQuestion& question) const;
  /// These tokens of the questions at these places: the streams of `past`.
  void read_prefixes(std::span<const TokenQuestion> questions, Places places, ModelPast& past);
  /// Ten streams for each question, which go on from where `past` is. streams: that of each question in `past`.
  void read_candidates(std::span<const TokenQuestion> questions, Places places, std::span<const std::int64_t> streams,
                       const ModelPast& past, std::vector<CandidateScores>& scores);
  /// Losses of the targets of a block, or nothing where it has none.
  std::vector<double> run(const BlockTokens& block, ModelPast& past);

  /// Columns of a block of context, where it does not matter.
  static constexpr std::int64_t kReadColumns = 64;

  Placed<RecurrentModel> placed_;
  CandidateScore score_;
  std::size_t batch_;
  std::int64_t block_length_;  // 0: anything gives the same
  FrozenPasts reading_{placed_, kReadColumns}, forked_{placed_, kReadColumns};
  BlockTensors tensors_;
};

}  // namespace engram
