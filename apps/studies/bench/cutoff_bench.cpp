#include "apps/studies/bench/cutoff_bench.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "apps/run/cost/cluster_shares.hpp"
#include "apps/studies/bench/cutoff_choice.hpp"
#include "apps/studies/bench/token_ends.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::size_t kUsualClusters = 4;
/// Logits of the largest cluster that is timed; work grows in proportion from there on.
constexpr std::int64_t kMostTimedLogits = std::int64_t{1} << 24;

ModelOptions with_cutoffs(ModelOptions model, std::vector<std::int64_t> cutoffs) {
  switch (model.family) {
    case ModelFamily::all_attention:
      model.all_attention.cutoffs = std::move(cutoffs);
      return model;
    case ModelFamily::transformer_xl:
      model.transformer_xl.cutoffs = std::move(cutoffs);
      return model;
    case ModelFamily::recurrent:
      if (model.recurrent.vector_width() != model.recurrent.hidden_width())
        throw UsageError(text("count: --choose-cutoffs needs a recurrent model whose input has the width that its ",
                              "softmax sees, ", model.recurrent.hidden_width(), ", got ",
                              model.recurrent.vector_width(), "\n  model.embedding_width sets it"));
      model.recurrent.cutoffs = std::move(cutoffs);
      return model;
    case ModelFamily::product_key:
      break;
  }
  throw UsageError(text("count: --choose-cutoffs must be for a family whose vocabulary has clusters, all_attention, ",
                        "transformer_xl or recurrent, got ", name_of(model.family)));
}

/// Of what the softmax sees.
std::int64_t hidden_width(const ModelOptions& model) {
  return model.family == ModelFamily::recurrent ? model.recurrent.hidden_width() : model.width();
}

/// The widths of so many clusters' vectors.
std::vector<std::int64_t> cluster_widths(const ModelOptions& model, std::size_t clusters) {
  std::vector<std::int64_t> any(clusters - 1);
  std::iota(any.begin(), any.end(), std::int64_t{1});
  const std::unique_ptr<LanguageModel> made = make_model(with_cutoffs(model, any));
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < clusters; ++i) widths.push_back((*made->tokens().clusters())[i].width);
  return widths;
}

/// Sizes from `least` to `most`, each `factor` times the one before, the last one `most` itself; at least two.
std::vector<double> sizes_between(std::int64_t least, std::int64_t most, std::int64_t factor) {
  std::vector<double> sizes;
  for (std::int64_t size = std::min(least, std::max<std::int64_t>(1, most / 2)); size < most; size *= factor)
    sizes.push_back(static_cast<double>(size));
  sizes.push_back(static_cast<double>(std::max<std::int64_t>(2, most)));
  return sizes;
}

/// Times of clusters, by their vectors' width: as one table and softmax of their own, over as many tokens.
class ClusterBench {
 public:
  ClusterBench(Runtime& runtime, std::int64_t width, int rounds, std::function<void()> timed)
      : runtime_(&runtime), width_(width), rounds_(rounds), timed_(std::move(timed)) {}

  MeasuredTimes measure(std::int64_t vector_width, const std::vector<double>& tokens,
                        const std::vector<double>& words) const {
    std::vector<double> seconds(tokens.size() * words.size());
    for (std::size_t i = 0; i < tokens.size(); ++i)
      for (std::size_t j = 0; j < words.size(); ++j) {
        // Beyond the largest timed one, in proportion to the one before.
        const bool large = j > 0 && tokens[i] * words[j] > static_cast<double>(kMostTimedLogits);
        seconds[i * words.size() + j] = large ? seconds[i * words.size() + j - 1] * words[j] / words[j - 1]
                                              : time_cluster(vector_width, tokens[i], words[j]);
        timed_();
      }
    return {tokens, words, std::move(seconds)};
  }

 private:
  double time_cluster(std::int64_t vector_width, double tokens, double words) const {
    const auto vocabulary = static_cast<std::int64_t>(words);
    const std::unique_ptr<TokenIo> io = make_token_io({.vocabulary = vocabulary,
                                                       .width = width_,
                                                       .embedding_width = vector_width,
                                                       .tie_plain = true,
                                                       .logits_bytes = std::int64_t{1} << 40});
    TokenEnds ends(*io, *runtime_);
    ends.take(ranked_tokens(static_cast<std::int64_t>(tokens) + 1, vocabulary, 1));
    ends.train();
    std::vector<double> seconds;
    for (int round = 0; round < rounds_; ++round) seconds.push_back(ends.train());
    return *std::ranges::min_element(seconds);  // what others take of the machine is not the cluster's
  }

  Runtime* runtime_;
  std::int64_t width_;
  int rounds_;
  std::function<void()> timed_;
};

/// How many of a text's words are below each id.
std::vector<double> words_below(const data::TokenView& tokens, std::int64_t vocabulary) {
  std::vector<double> sums(static_cast<std::size_t>(vocabulary) + 1);
  for (std::int64_t i = 0; i < tokens.size(); ++i) ++sums[static_cast<std::size_t>(tokens[i]) + 1];
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  for (double& sum : sums) sum /= static_cast<double>(tokens.size());
  return sums;
}

/// A model's own ends with these cut-offs.
struct CutEnds {
  std::unique_ptr<LanguageModel> model;
  TokenEnds ends;

  CutEnds(const ModelOptions& options, const std::vector<std::int64_t>& cutoffs, Runtime& runtime)
      : model(make_model(with_cutoffs(options, cutoffs))), ends(model->tokens(), runtime) {}
};

/// Times both in turns, each over the same blocks, which lie apart in the text.
void time_in_turns(const CutoffQuestion& question, const data::TokenView& training, Runtime& runtime,
                   const std::vector<TimedCutoffs*>& choices, std::int64_t tokens, const std::function<void()>& timed) {
  std::vector<std::unique_ptr<CutEnds>> ends;
  for (const TimedCutoffs* choice : choices)
    ends.push_back(std::make_unique<CutEnds>(question.config.model, choice->cutoffs, runtime));
  std::vector<std::int32_t> block(static_cast<std::size_t>(tokens) + 1);
  const std::int64_t places = training.size() - tokens - 1;
  for (int round = -1; round < question.rounds; ++round) {  // the first is not counted
    training.copy(places * std::max(round, 0) / question.rounds, tokens + 1, block.data());
    for (std::size_t i = 0; i < choices.size(); ++i) {
      ends[i]->ends.take(block);
      const double seconds = ends[i]->ends.train();
      if (round >= 0) choices[i]->seconds.push_back(seconds);
    }
    timed();
  }
  for (TimedCutoffs* choice : choices) std::ranges::sort(choice->seconds);
}

}  // namespace

CutoffReport choose_cutoffs(const CutoffQuestion& question, const data::TokenView& training, Runtime& runtime,
                            const std::function<void(std::int64_t done, std::int64_t all)>& progress) {
  const RunConfig& config = question.config;
  const std::vector<std::int64_t>& own = config.model.cutoffs();
  const std::size_t clusters = question.clusters != 0 ? question.clusters
                               : own.empty()          ? kUsualClusters
                                                      : own.size() + 1;
  if (clusters < 2) throw UsageError(text("count: --clusters must be at least 2, got ", clusters));
  CutoffReport report{.device = text(runtime.backend().device()),
                      .vocabulary = config.model.vocabulary(),
                      .tokens = config.training.batch / config.training.split * config.training.block,
                      .widths = cluster_widths(config.model, clusters)};
  if (training.size() < report.tokens + 2)
    throw UsageError(text("count: --choose-cutoffs needs a text longer than the ", report.tokens,
                          " tokens of a step, got ", training.size(), "\n  --batch takes a smaller one"));
  constexpr std::int64_t kFactor = 4;
  const std::vector<double> tokens = sizes_between(16, report.tokens, kFactor);
  const std::vector<double> words = sizes_between(64, report.vocabulary, kFactor);
  std::vector<std::int64_t> distinct = report.widths;
  // Not std::ranges::unique: its result is none to Clang 14 with this C++ library.
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  report.points = static_cast<int>(distinct.size() * tokens.size() * words.size());
  const std::int64_t all = report.points + question.rounds + 1;
  std::int64_t done = 0;
  const auto timed = [&] { progress(++done, all); };
  const ClusterBench bench(runtime, hidden_width(config.model), question.rounds, timed);
  std::map<std::int64_t, MeasuredTimes> times;
  for (const std::int64_t width : distinct) times.emplace(width, bench.measure(width, tokens, words));

  const std::vector<double> below = words_below(training, report.vocabulary);
  const auto seconds = [&](std::size_t cluster, std::int64_t first, std::int64_t end) {
    // The first softmax is of all tokens, and has a slot for each other cluster.
    const double share =
        cluster == 0 ? 1 : below[static_cast<std::size_t>(end)] - below[static_cast<std::size_t>(first)];
    const std::int64_t slots = cluster == 0 ? static_cast<std::int64_t>(clusters) - 1 : 0;
    return times.at(report.widths[cluster])
        .at(share * static_cast<double>(report.tokens), static_cast<double>(end - first + slots));
  };
  const CutoffPlan plan = cheapest_cutoffs(cutoff_candidates(report.vocabulary), report.vocabulary, clusters, seconds);
  report.chosen = {.cutoffs = plan.cutoffs,
                   .shares = counted_shares(plan.cutoffs, training),
                   .predicted = plan.seconds,
                   .seconds = {}};
  std::vector<TimedCutoffs*> choices{&report.chosen};
  if (own.size() + 1 == clusters) {
    report.own = {.cutoffs = own,
                  .shares = counted_shares(own, training),
                  .predicted = seconds_of_cutoffs(own, report.vocabulary, seconds),
                  .seconds = {}};
    choices.push_back(&*report.own);
  }
  time_in_turns(question, training, runtime, choices, report.tokens, timed);
  return report;
}

}  // namespace engram
