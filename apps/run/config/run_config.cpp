#include "apps/run/config/run_config.hpp"

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "core/error.hpp"
#include "nn/option_limits.hpp"

namespace engram {

void RunConfig::check() const {
  const auto require = [](bool valid, std::string_view option, std::string_view rule, const auto& value) {
    if (!valid) throw UsageError(text(option, " must be ", rule, ", got ", value));
  };
  const auto within = [&require](std::string_view option, auto value, std::type_identity_t<decltype(value)> least,
                                 std::type_identity_t<decltype(value)> most) {
    require(value >= least && value <= most, option, text("from ", least, " to ", most), value);
  };
  model.check();
  optimizer.check();
  constexpr std::int64_t kMostSteps = option_limits::kSteps;
  within("schedule: steps", schedule.steps, 1, kMostSteps);
  schedule.check();
  // The rows of a block are counted in int, and so are its tokens.
  constexpr std::int64_t kMostRows = 1 << 24, kMostTokens = option_limits::kRows, kDrawnMore = 15;
  within("training: finetune_steps", training.finetune_steps, 0, kMostSteps);
  require(training.finetune_steps <= kMostSteps - schedule.steps, "schedule: steps and training: finetune_steps",
          text("together at most ", kMostSteps), text(schedule.steps, " and ", training.finetune_steps));
  require(training.batch >= 1 && training.batch <= kMostRows, "training: batch", "from 1 to 2^24 streams",
          training.batch);
  require(training.block >= 1 && training.block <= kMostRows, "training: block", "from 1 to 2^24 tokens",
          training.block);
  require(training.extension >= 0 && training.extension <= kMostRows - training.block, "training: extension",
          text("from 0 to 2^24 - block ", training.block), training.extension);
  const std::int64_t longest = training.block + training.extension + (training.drawn_lengths ? kDrawnMore : 0);
  require(training.batch <= kMostTokens / longest, "training: batch",
          text("at most ", kMostTokens / longest, " streams, with blocks of ", longest, " tokens"), training.batch);
  if (const std::optional<std::int64_t> rows = model.position_rows())
    require(*rows >= longest, "model: position_rows", text("at least ", longest, ", the tokens of the longest block"),
            *rows);
  // Recurrences have no kernels for rounded states.
  require(model.family != ModelFamily::recurrent || training.activations == ActivationPrecision::f32,
          "training: activations", "f32 for models of family recurrent",
          "bf16\n  --dtype bf16 rounds the operands of products");
  require(!training.latest_half || training.extension == 0, "training: latest_half",
          text("false with an extension of ", training.extension), training.latest_half);
  require(training.split >= 1 && training.batch % training.split == 0, "training: split",
          text("a divisor of batch ", training.batch), training.split);
  require(training.split <= 65535, "training: split", "at most 65535", training.split);
  within("training: span_loss", training.span_loss, 0, option_limits::kLargest);
  within("training: report_every", training.report_every, 1, kMostSteps);
  within("training: validate_every", training.validate_every, 1, kMostSteps);
  within("training: validate_blocks", training.validate_blocks, 1, kMostTokens);
  within("training: checkpoint_every", training.checkpoint_every, 1, kMostSteps);
  within("training: sample_every", training.sample_every, 0, kMostSteps);
  constexpr std::size_t kLongestPrompt = 4096;  // it is in every config.toml and checkpoint
  require(training.sample_prompt.size() <= kLongestPrompt, "training: sample_prompt",
          text("at most ", kLongestPrompt, " bytes"), text(training.sample_prompt.size(), " bytes"));
}

}  // namespace engram
