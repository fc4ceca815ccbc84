#include "apps/studies/context/length_sweep.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/run/evaluation/score.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::vector<std::int64_t> lengths_of(const StudiedRun& run, const LengthSweepOptions& options) {
  std::vector<std::int64_t> lengths = options.lengths;
  lengths.push_back(run.training_length());
  std::ranges::sort(lengths);
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

Visibility visibility_of(const StudiedRun& run, const LengthSweepOptions& options) {
  return options.same_length && run.remembers() ? Visibility::last_memory : run.config.model.transformer_xl.visibility;
}

std::int64_t most_keys(const StudiedRun& run, Visibility visibility, std::int64_t length) {
  if (!run.remembers() || visibility == Visibility::last_memory) return length;
  if (visibility == Visibility::last_memory_plus_1) return length + 1;
  return length + run.config.training.block + run.config.training.extension;
}

/// A length without its result.
LengthPoint planned(const StudiedRun& run, const LengthSweepOptions& options, std::int64_t length) {
  const TransformerXlOptions& model = run.config.model.transformer_xl;
  LengthPoint point{.length = length, .keys = most_keys(run, visibility_of(run, options), length)};
  if (!run.remembers()) point.stride = std::min(options.stride > 0 ? options.stride : (length + 3) / 4, length);
  if (model.positions == PositionKind::absolute_learned && length > model.position_rows)
    point.note = text("not possible: the table of positions has ", model.position_rows, " rows");
  const std::int64_t clamp = options.clamp.value_or(model.clamp);
  const std::int64_t rows = clamp > 0 ? std::min(clamp, model.position_rows) : model.position_rows;
  if (model.positions == PositionKind::shaw && point.keys > rows)
    point.note = text("distances from ", rows - 1, " on share a row of the table");
  return point;
}

bool is_possible(const StudiedRun& run, const LengthPoint& point) {
  const TransformerXlOptions& model = run.config.model.transformer_xl;
  return model.positions != PositionKind::absolute_learned || point.length <= model.position_rows;
}

}  // namespace

void check_length_sweep(const std::vector<StudiedRun>& runs, const LengthSweepOptions& options,
                        data::TokenView tokens) {
  const bool any_memory = std::ranges::any_of(runs, &StudiedRun::remembers);
  if (!any_memory && (options.same_length || options.exact))
    throw UsageError(text("lengths: ", options.same_length ? "--same-length" : "--exact",
                          " is for runs with memory, got none of them"));
  if (options.stride > 0 && std::ranges::all_of(runs, &StudiedRun::remembers))
    throw UsageError("lengths: --stride is for runs without memory, got none of them");
  for (const StudiedRun& run : runs) {
    if (run.config.model.family != ModelFamily::transformer_xl)
      throw UsageError(
          text("lengths: runs must be of family transformer_xl, got '", run.name, "' of family ",
               name_of(run.config.model.family),
               run.config.model.family == ModelFamily::product_key
                   ? "\n  engram evaluate --window reads other lengths, up to model.position_rows"
                   : "\n  the span of those is a part of the model; engram spans shows how far they look"));
    // A memory cannot hold more than its stream has.
    const bool streams = run.remembers() && !options.exact;
    const std::int64_t readable = streams ? tokens.size() / kSegmentStreams : tokens.size();
    for (const std::int64_t length : lengths_of(run, options))
      if (length >= readable)
        throw UsageError(text("lengths: every length must be below the number of tokens",
                              streams ? " of each of the ten streams, " : ", ", readable, ", got ", length,
                              length == run.training_length() ? ", the training length" : "", " for '", run.name,
                              "'\n  take more tokens, shorter lengths (--lengths, --longest)",
                              streams ? ", or one stream (--exact)" : ""));
  }
}

LengthCurve sweep_lengths(const StudiedRun& run, data::TokenView tokens, const LengthSweepOptions& options,
                          Runtime& runtime, DType dtype, const LengthFound& found) {
  TrainedModel trained(run.checkpoint, CheckpointKind::newest, runtime, dtype);
  TransformerXlModel& model = transformer_xl_of(trained);
  LengthCurve curve{.run = run, .points = {}};
  for (const std::int64_t length : lengths_of(run, options)) {
    LengthPoint point = planned(run, options, length);
    if (is_possible(run, point)) {
      SegmentContext context = model.context();
      if (options.clamp) context.clamp = *options.clamp;
      SplitEvaluationOptions way{.exact = options.exact};
      if (run.remembers()) {
        context.memory = length;
        context.visibility = visibility_of(run, options);
      } else {
        way = {.window = static_cast<int>(length), .stride = static_cast<int>(point.stride)};
      }
      way.watch = options.watch;
      model.set_context(context);
      const Evaluation result = evaluate_split(trained, tokens, way).result;
      if (!std::isfinite(result.nll()))
        throw UsageError(text("lengths: losses must be finite, got ", result.nll(), " of '", run.name, "' at length ",
                              length, "\n  leave out runs that diverged"));
      point.nll = result.nll();
      point.scored = result.scored;
      point.seconds = result.seconds;
    }
    if (found) found(point);
    curve.points.push_back(std::move(point));
  }
  return curve;
}

LengthSummary summarise(const LengthCurve& curve, data::TokenKind kind, double tolerance) {
  LengthSummary summary{.best = std::numeric_limits<double>::infinity()};
  for (const LengthPoint& point : curve.points) {
    if (!point.nll) continue;
    const double score = score_of(kind, *point.nll);
    if (point.length == curve.run.training_length()) summary.init = score;
    if (score < summary.best) summary.best = score, summary.best_length = point.length;
  }
  for (const LengthPoint& point : curve.points)
    if (point.nll && score_of(kind, *point.nll) <= summary.best + tolerance) {
      summary.attention_length = point.length;
      break;
    }
  return summary;
}

}  // namespace engram
