#include "apps/commands/evaluate_arguments.hpp"

#include "apps/commands/output_file.hpp"
#include "apps/commands/shared_options.hpp"
#include "core/error.hpp"

namespace engram {

void EvaluateArguments::add_to(Command& command) {
  command_ = &command;
  model.add_run(command);
  command.add_option("--data", data, "data folder that engram prepare wrote")->required();
  command.add_option("--split", split, "train, valid or test")
      ->suggest({"train", "valid", "test"})
      ->capture_default_str();
  command.add_flag("--exact", way.exact,
                   "score every token but the first; otherwise streams side by side, as the papers do");
  command
      .add_option(
          "--batch", way.batch,
          "streams side by side; does not change exact results [8, other families than all_attention 10; with --exact "
          "at most 8; recurrent, product_key and transformer_xl without --same-length 1]")
      ->positive();
  command
      .add_option("--block", way.block,
                  "tokens of a stream per step; does not change exact results, but for product_key and transformer_xl "
                  "without --same-length [the run's; with --exact 256, but for the same]")
      ->positive();
  command.add_option("--window", way.window, "read so many tokens from nothing for every --stride new ones")
      ->positive();
  command.add_option("--stride", way.stride, "new tokens of each window")->positive()->capture_default_str();
  command.add_flag("--apart", way.apart,
                   "with --window: windows side by side, all but the first token of each scored (ppl_window)");
  command.add_option("--mem-len", memory_, "transformer_xl: positions that layers remember [the run's]")
      ->non_negative();
  command.add_option("--clamp-len", clamp_, "transformer_xl: distances above it count as it; 0: none [the run's]")
      ->non_negative();
  add_carry_option(command, carry_);
  command
      .add_option("--cache", way.cache.positions,
                  "recurrent models: mix a cache of the last N positions of each text into the probabilities; 0: none")
      ->non_negative()
      ->capture_default_str();
  command.add_option("--cache-theta", way.cache.theta, "how sharply the cache prefers positions like this one")
      ->capture_default_str();
  command.add_option("--cache-lambda", way.cache.lambda, "the cache's share of the probabilities, below 1")
      ->capture_default_str();
  command
      .add_option(
          "--same-length", same_length_,
          "transformer_xl: every position sees --mem-len ones, itself among them (last_memory, or no value), one more "
          "(last_memory_plus_1) or all there are (all) [the run's]")
      ->one_of_or({"last_memory", "last_memory_plus_1", "all"}, "last_memory");  // what follows may be the run
  command.add_option("--per-token", per_token,
                     "write the loss of every token of the split, in nats, NaN where not scored (.npy, float32, "
                     "with --dtype f64 float64)");
  model.add_options(command);
  output.add_json(command);
}

void EvaluateArguments::check() const {
  if (way.cache.positions == 0 && command_->count("--cache-theta") + command_->count("--cache-lambda") > 0)
    throw UsageError("evaluate: --cache-theta and --cache-lambda are those of --cache, got none");
  if (way.window > 0 && (way.exact || command_->count("--block") > 0))
    throw UsageError("evaluate: --window has a way and blocks of its own, got --exact or --block too");
  if (way.window == 0 && command_->count("--stride") > 0)
    throw UsageError("evaluate: --stride is that of --window, got none");
  if (way.apart && (way.window == 0 || command_->count("--stride") > 0))
    throw UsageError("evaluate: --apart is for --window without --stride, got no --window or a --stride");
}

void EvaluateArguments::check_files() const { check_output_file("evaluate: --per-token", per_token, {kNpyBeginning}); }

std::string EvaluateArguments::all_told() const {
  std::string told = text("--split ", split, way.exact ? " --exact" : "", way.apart ? " --apart" : "");
  const auto tell = [&](const char* option, const auto& value) {
    if (command_->count(option) > 0) told += text(" ", option, " ", value);
  };
  tell("--batch", way.batch);
  tell("--block", way.block);
  tell("--window", way.window);
  tell("--stride", way.stride);
  tell("--mem-len", memory_);
  tell("--clamp-len", clamp_);
  tell("--same-length", same_length_);
  tell("--carry", carry_);
  tell("--cache", way.cache.positions);
  tell("--cache-theta", way.cache.theta);
  tell("--cache-lambda", way.cache.lambda);
  return told;
}

ContextOptions EvaluateArguments::context() const {
  ContextOptions context;
  if (command_->count("--mem-len") > 0) context.memory = memory_;
  if (command_->count("--clamp-len") > 0) context.clamp = clamp_;
  if (command_->count("--same-length") > 0) context.visibility = find_named<Visibility>(same_length_);
  context.carry = carry_option(carry_);
  return context;
}

}  // namespace engram
