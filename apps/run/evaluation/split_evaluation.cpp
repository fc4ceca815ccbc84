#include "apps/run/evaluation/split_evaluation.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "apps/data/blocks/evaluation_plan.hpp"
#include "apps/data/blocks/segment_evaluation.hpp"
#include "apps/data/blocks/window_evaluation.hpp"
#include "core/error.hpp"
#include "core/host_copy.hpp"

namespace engram {
namespace {

/// Articles that are read side by side unless told otherwise.
constexpr int kArticleStreams = 64;

/// The papers' ways.
std::unique_ptr<data::EvaluationPlan> usual_plan(const SplitEvaluationOptions& options, const RunConfig& config,
                                                 data::TokenView tokens, int& rows) {
  const int block = options.block > 0 ? options.block : static_cast<int>(config.training.block);
  if (!config.model.reads_segments()) {
    rows = options.batch > 0 ? options.batch : data::FullEvaluation::kUsualRows;
    return std::make_unique<data::FullEvaluation>(tokens, block, rows);
  }
  rows = options.batch > 0 ? options.batch : kSegmentStreams;
  return std::make_unique<data::SegmentEvaluation>(tokens, block, static_cast<int>(config.training.extension), rows);
}

/// How the results of a model that depends on blocks come not to do so.
std::string_view advice_of(const ModelOptions& model) {
  if (model.family == ModelFamily::recurrent) return "\n  --carry detached makes a model independent of that";
  return model.remembers() ? "\n  --same-length makes a model independent of that"
                           : "\n  --window has windows side by side";
}

std::unique_ptr<data::EvaluationPlan> exact_plan(const SplitEvaluationOptions& options, TrainedModel& trained,
                                                 data::TokenView tokens, int& rows) {
  const TrainingOptions& training = trained.config().training;
  if (trained.model().depends_on_blocks()) {
    // Blocks begin at the same tokens in one stream only.
    rows = options.batch > 0 ? options.batch : 1;
    if (rows > 1)
      throw UsageError(text("evaluate: --exact must have one stream where results depend on how the text is cut, got ",
                            "--batch ", rows, advice_of(trained.config().model)));
    const int block = options.block > 0 ? options.block : static_cast<int>(training.block);
    return std::make_unique<data::SegmentEvaluation>(tokens, block, static_cast<int>(training.extension));
  }
  // With several rows, each starts so many tokens before the ones it scores that its past is as in one long run.
  // Neither changes the result, so both are what is fast: several rows, unless what they must read before the tokens
  // that they score costs more than an eighth, and long blocks.
  constexpr std::int64_t kWorthwhile = 8;
  const std::int64_t reach = std::max<std::int64_t>(1, trained.model().reach());
  if (options.batch > 1 && trained.model().reach() == LanguageModel::kWholeText)
    throw UsageError(text("evaluate: --exact must have one stream where a token may depend on all before it, got ",
                          "--batch ", options.batch, "\n  without --exact every stream begins with nothing known"));
  rows = options.batch > 0 ? options.batch
                           : static_cast<int>(std::clamp<std::int64_t>(tokens.size() / (kWorthwhile * reach), 1,
                                                                       data::FullEvaluation::kUsualRows));
  const int block = options.block > 0 ? options.block : kExactBlock;
  return std::make_unique<data::ExactEvaluation>(tokens, block, rows, reach);
}

/// Articles do not depend on each other: only the number of streams and the length of blocks is open, and neither
/// changes the result, unless blocks are read without those before.
std::unique_ptr<data::EvaluationPlan> article_plan(const SplitEvaluationOptions& options, const RunConfig& config,
                                                   const data::ArticleSplit& split, int& rows) {
  rows =
      options.batch > 0 ? options.batch : static_cast<int>(std::min<std::int64_t>(kArticleStreams, split.articles()));
  const int block = options.block > 0 ? options.block : static_cast<int>(config.training.block);
  return std::make_unique<data::ArticleEvaluation>(split, block, rows);
}

std::unique_ptr<data::EvaluationPlan> make_plan(const SplitEvaluationOptions& options, TrainedModel& trained,
                                                const data::ArticleSplit& split, int& rows) {
  const data::TokenView tokens = split.tokens;
  if (options.window == 0 && trained.config().model.reads_articles(split.articles()))
    return article_plan(options, trained.config(), split, rows);
  if (options.window == 0)
    return options.exact ? exact_plan(options, trained, tokens, rows)
                         : usual_plan(options, trained.config(), tokens, rows);
  if (options.window > tokens.size())
    throw UsageError(
        text("evaluate: --window must be at most the ", tokens.size(), " tokens of the split, got ", options.window));
  constexpr int kWindows = 32;  // side by side
  rows = options.batch > 0 ? options.batch : kWindows;
  if (options.apart) return std::make_unique<data::WindowEvaluation>(tokens, options.window, rows);
  return std::make_unique<data::SlidingEvaluation>(tokens, options.window, options.stride, rows);
}

/// Speaks of the option that made blocks so long; the model could name their lengths only.
void check_positions(const SplitEvaluationOptions& options, const RunConfig& config, const data::EvaluationPlan& plan) {
  const std::optional<std::int64_t> rows = config.model.position_rows();
  if (!rows || plan.longest_block() <= *rows) return;
  // The last token of a window that lies apart is a target alone; --block does not count the extension before it.
  const std::int64_t beyond = options.apart ? 1 : options.window > 0 ? 0 : -config.training.extension;
  throw UsageError(text("evaluate: ", options.window > 0 ? "--window" : "--block", " must be at most ", *rows + beyond,
                        " tokens, for the model's table of positions has ", *rows, " rows (model.position_rows), got ",
                        options.window > 0 ? options.window : options.block));
}

void check_cache(const SplitEvaluationOptions& options, const TrainedModel& trained) {
  options.cache.check("evaluate");
  if (options.cache.positions == 0) return;
  if (trained.config().model.family != ModelFamily::recurrent)
    throw UsageError(text("evaluate: --cache is for models of family recurrent, got one of family ",
                          name_of(trained.config().model.family)));
  if (options.window > 0) throw UsageError("evaluate: --cache is for streams, got --window too");
}

BlockLosses cached_losses(const NeuralCacheOptions& options, Runtime& runtime) {
  return [caches = StreamCaches(options), &runtime](const data::Block& block, const Tensor& hidden,
                                                    std::span<double> losses) mutable {
    caches.apply(block, host_doubles(runtime.backend(), hidden), losses);
  };
}

/// How the work is cut, by what is read alone.
WorkShare share_of_work(const SplitEvaluationOptions& options, const RunConfig& config,
                        const data::EvaluationPlan& plan, int rows) {
  WorkShare share{.ranks = options.ranks};
  share.blocks_apart = options.window > 0 || !config.model.remembers();
  if (share.blocks_apart) return share;
  share.pieces = pieces_of(rows, plan.longest_block());
  share.block_tokens = rows * plan.longest_block();
  return share;
}

}  // namespace

std::int64_t pieces_of(std::int64_t rows, std::int64_t longest_block) {
  constexpr std::int64_t kPieceTokens = 128;
  return std::clamp<std::int64_t>(rows * longest_block / kPieceTokens, 1, rows);
}

void ContextOptions::apply(ModelOptions& model, std::string_view command) const {
  if (carry) {
    if (model.family != ModelFamily::recurrent)
      throw UsageError(
          text(command, ": --carry is for models of family recurrent, got one of family ", name_of(model.family)));
    model.recurrent.carry_evaluation = *carry == Carry::detached;
  }
  if (!of_segments()) return;
  if (model.family != ModelFamily::transformer_xl)
    throw UsageError(text(command, ": --mem-len, --clamp-len and --same-length are for models of family ",
                          "transformer_xl, got one of family ", name_of(model.family)));
  TransformerXlOptions& options = model.transformer_xl;
  if (memory) options.memory = *memory;
  if (clamp) options.clamp = *clamp;
  if (visibility) options.visibility = *visibility;
}

std::int64_t costly_reading(const SplitEvaluationOptions& options) {
  constexpr std::int64_t kMany = 100;
  const std::int64_t reading = options.window > 0 && !options.apart ? options.window / options.stride : 0;
  return reading >= kMany ? reading : 0;
}

void check_usual_evaluation(const RunConfig& config, const data::ArticleSplit& split) {
  int rows = 0;
  if (config.model.reads_articles(split.articles()))
    article_plan({}, config, split, rows);
  else
    usual_plan({}, config, split.tokens, rows);
}

SplitEvaluation evaluate_split(TrainedModel& trained, const data::ArticleSplit& split,
                               const SplitEvaluationOptions& options, EvaluationHooks hooks) {
  check_cache(options, trained);
  int rows = 0;
  const auto plan =
      std::make_unique<WatchedPlan>(make_plan(options, trained, split, rows), options.watch, options.most_blocks);
  check_positions(options, trained.config(), *plan);
  const WorkShare share = share_of_work(options, trained.config(), *plan, rows);
  if (options.begins) options.begins(share.blocks_apart ? plan->block_count() : share.pieces);
  const PlacedModel placed = trained.placed();
  if (options.cache.positions > 0) hooks.change = cached_losses(options.cache, placed.runtime);
  // Windows at the start and at the end come one by one.
  FrozenPasts pasts(placed, plan->longest_block());
  return {evaluate(placed, *plan, std::ref(pasts), hooks, share), rows};
}

}  // namespace engram
