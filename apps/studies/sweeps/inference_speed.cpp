#include "apps/studies/sweeps/inference_speed.hpp"

#include <algorithm>
#include <map>

#include "apps/run/evaluation/loss_report.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/training/step_memory.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "nn/checkpoint.hpp"

namespace engram {
namespace {

constexpr int kRounds = 3;
constexpr std::int64_t kTimedBlocks = 8;

/// Of a variant.
struct Timed {
  const SweepRun* run = nullptr;
  std::vector<double> tokens;  // a second, of each round
  double words_per_token = 0;  // of the text, for each token that is read; 0: not known
  bool failed = false;
};

void time_once(const SweepOptions& options, const data::DataSet& data, Timed& variant) {
  Runtime runtime(options.device, options.threads);
  TrainedModel trained(checkpoint_path(variant.run->folder, CheckpointKind::newest), CheckpointKind::newest, runtime);
  const RunConfig& config = trained.config();
  const std::int64_t block =
      options.exact ? std::min<std::int64_t>(kExactBlock, config.training.block) : config.training.block;
  const std::int64_t filling = 1 + longest_past(config.model) / block;
  const Evaluation read =
      evaluate_split(trained, {data, "valid"}, {.exact = options.exact, .most_blocks = filling + kTimedBlocks}).result;
  variant.tokens.push_back(read.tokens_per_second(static_cast<std::size_t>(filling)));
  if (const auto amount = data.text_amount("valid"))
    variant.words_per_token = words_in(*amount, data.split("valid").size()) * static_cast<double>(read.scored) /
                              static_cast<double>(read.inputs);
}

}  // namespace

void time_variants(const SweepOptions& options, const data::DataSet& data, const std::vector<SweepRun>& runs,
                   const std::function<bool()>& stop, std::vector<RunResult>& results) {
  std::map<std::size_t, Timed> variants;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (results[i].outcome == RunOutcome::done) variants.try_emplace(runs[i].variant, Timed{.run = &runs[i]});
  WorkProgress progress("timing the variants in turns");
  for (int round = 0; round < kRounds; ++round)
    for (auto& [number, variant] : variants) {
      if (variant.failed) continue;
      if (stop()) throw Interrupted("interrupted when all were trained; the same sweep again times them");
      try {
        time_once(options, data, variant);
      } catch (const Error& error) {
        variant.failed = true;
        log(LogLevel::warning, text("sweep: ", variant.run->name, " is not timed: ", error.what()));
      }
    }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto found = variants.find(runs[i].variant);
    if (found == variants.end() || found->second.failed || results[i].outcome != RunOutcome::done) continue;
    Timed& timed = found->second;
    std::ranges::sort(timed.tokens);
    results[i].inference_tokens = timed.tokens[timed.tokens.size() / 2];
    if (timed.words_per_token > 0) results[i].inference_words = *results[i].inference_tokens * timed.words_per_token;
  }
}

}  // namespace engram
