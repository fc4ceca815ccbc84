#pragma once
/// Measuring a trained model on a split, the papers' way or exactly: what `engram evaluate` does.

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/run/evaluation/evaluator.hpp"
#include "apps/run/evaluation/neural_cache.hpp"
#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/trained_model.hpp"
#include "nn/models/model_options.hpp"

namespace engram {

/// Streams of models of segments unless told otherwise, as in the published evaluations.
inline constexpr int kSegmentStreams = 10;

/// Tokens of a stream in a block with `exact`, unless told otherwise.
inline constexpr int kExactBlock = 256;

struct SplitEvaluationOptions {
  bool exact = false;  ///< score every token but the first; otherwise whole blocks of 8 streams
  int batch = 0;       ///< streams; 0: 8 (models of segments kSegmentStreams), with `exact` at most 8
  int block = 0;       ///< tokens of a stream per step; 0: the run's, with `exact` 256
  /// Above 0: every window of so many tokens is read from nothing and scores its last `stride` ones: the way of models
  /// without memory ([transformer-xl 1.9]). Scores every token but the first.
  int window = 0;
  int stride = 1;
  /// With `window`: windows lie side by side, and all but the first token of each are scored ([product-key 6]);
  /// `stride` has no meaning.
  bool apart = false;
  NeuralCacheOptions cache = {};  ///< of the family recurrent, without `window`
  EvaluationWatch watch = {};     ///< hears how far the evaluation has come
  std::int64_t most_blocks = 0;   ///< ends after so many blocks, to be timed; 0: after all
  /// Called when nothing was refused, before anything is read, with how many ranks would have work; may be empty.
  std::function<void(std::int64_t parts)> begins = {};
  Communicator* ranks = nullptr;  ///< that share the work (WorkShare); nullptr: one
};

/// How many tokens are read for each that is scored when windows slide, where that is so many (a hundred or more) that
/// a user should be told; else 0.
std::int64_t costly_reading(const SplitEvaluationOptions& options);

/// What evaluation may set otherwise than training did, of models of segments and of recurrent ones.
struct ContextOptions {
  std::optional<std::int64_t> memory;  ///< positions
  std::optional<std::int64_t> clamp;   ///< distances above it count as it; 0: no clamp
  std::optional<Visibility> visibility;
  std::optional<Carry> carry;  ///< what readouts see of earlier blocks

  bool any() const { return of_segments() || carry; }
  /// Throws UsageError for a model of another family, naming the `command`.
  void apply(ModelOptions& model, std::string_view command) const;

 private:
  bool of_segments() const { return memory || clamp || visibility; }
};

/// Throws the UsageError of evaluating a split without options, where it is too short.
void check_usual_evaluation(const RunConfig& config, const data::ArticleSplit& split);

/// Into how many pieces of neighbouring rows streams that remember are cut (WorkShare::pieces), whatever the number of
/// ranks: so many that each has a few hundred tokens of a block, fewer of which would be computed at a lower speed.
/// `longest_block`: tokens of a stream; both at least 1.
std::int64_t pieces_of(std::int64_t rows, std::int64_t longest_block);

struct SplitEvaluation {
  Evaluation result;
  int rows = 0;  ///< streams that were used
};
/// Models of segments: streams of segments, 10 of them, as the paper does, and one with `exact` where results depend on
/// how the text is cut. Through key and value rings, in the precision of the model's parameters. Throws UsageError when
/// the split is too short for the streams and blocks. `hooks`: as evaluate() takes them; a cache is in the place of
/// their `change`. Models that know where texts begin read articles from nothing, each token of which is a target once,
/// whatever `exact` says. Throws UsageError for a cache of a model of another family, with windows, or out of range,
/// for windows longer than the split, and for windows and blocks that the model's table of positions is too short for.
/// With several ranks, which all must hold the whole model, it is collective, as evaluate().
SplitEvaluation evaluate_split(TrainedModel& trained, const data::ArticleSplit& split,
                               const SplitEvaluationOptions& options, EvaluationHooks hooks = {});

}  // namespace engram
