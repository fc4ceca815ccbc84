#include <memory>

#include "apps/commands/bench_ways.hpp"
#include "apps/commands/commands.hpp"
#include "apps/commands/shared_options.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct BenchArguments {
  BenchOptions shared;
  BenchModelsArguments models;
  BenchVanillaArguments vanilla;
  BenchProductKeysArguments product_keys;
  BenchCostArguments cost;
  bool softmax = false;
};

void run_bench(const BenchArguments& arguments, Communicator& ranks) {
  const BenchOptions& shared = arguments.shared;
  // Here: as exclusions of options they would make the help of every other way longer.
  const BenchModelsArguments& models = arguments.models;
  const bool of_configs = !arguments.vanilla.wanted && !arguments.product_keys.wanted && !arguments.softmax &&
                          !arguments.cost.wanted && !models.compare_spans;
  if (!models.vary.empty() && !of_configs)
    throw UsageError(text("bench: --vary is of training and --inference, got '", models.vary.front(), "'"));
  if (!shared.svg.empty() && !arguments.vanilla.wanted && (!of_configs || models.inference))
    throw UsageError(text("bench: --svg is of training and --against-vanilla, got '", shared.svg, "'"));
  if (shared.tokens != 0 && !arguments.softmax && !arguments.product_keys.wanted)
    throw UsageError(text("bench: --tokens is of --softmax or --memory, got ", shared.tokens, " and neither"));
  if (!ranks.alone() &&
      (arguments.vanilla.wanted || arguments.product_keys.wanted || arguments.softmax || arguments.cost.wanted))
    throw UsageError(
        text("bench: --against-vanilla, --memory, --softmax and --cost must be of one process, got ", ranks.size()));
  if (arguments.cost.wanted) return bench_cost(arguments.cost, models.spans, shared);
  if (arguments.vanilla.wanted) return bench_vanilla(arguments.vanilla, shared);
  if (arguments.product_keys.wanted) return bench_product_keys(arguments.product_keys, shared);
  if (arguments.softmax) return bench_softmax(shared);
  bench_models(models, shared, ranks);
}

}  // namespace

Command* add_bench_command(Command& program, Communicator* ranks) {
  Command* command = program.add_subcommand("bench", "time training and evaluation against this machine's limits");
  const auto arguments = std::make_shared<BenchArguments>();
  command->add_option("--config", arguments->shared.configs,
                      "TOML files, or names of engram configs [bench-a, bench-b, bench-c and bench-xl]");
  command->add_key_settings(arguments->shared.overrides, "override keys of the configs: section.key=value");
  command->add_option("--filter", arguments->models.filter, "only configs with this text in their names");
  command
      ->add_option(
          "--steps", arguments->shared.steps,
          "timed steps of each config, with --memory passes; with --inference blocks, and 16 tokens for each, or "
          "rounds (--side-by-side)")
      ->positive()
      ->capture_default_str();
  command->add_option("--vocab", arguments->shared.vocabulary, "symbols of the vocabulary, instead of the config's")
      ->positive();
  command
      ->add_option("--spans", arguments->models.spans,
                   "positions that the heads see, one number or one per head: 2048,32,32,32 [the longest]")
      ->delimiter(',');
  add_device_option(*command, arguments->shared.device);
  command
      ->add_option("--dtype", arguments->shared.dtype,
                   "operands of training's products: f32 or bf16 [the config's training.products]")
      ->one_of({"f32", "bf16"});
  add_threads_option(*command, arguments->shared.threads);
  command
      ->add_option("--product-size", arguments->shared.product_size,
                   "rows, columns and inner size of the largest product")
      ->capture_default_str();
  Option* compare = command->add_flag("--compare-spans", arguments->models.compare_spans,
                                      "every head at the longest span against spans that differ [of bench-b]");
  Option* inference =
      command
          ->add_flag("--inference", arguments->models.inference,
                     "frozen weights instead of training: evaluation through key and value rings, and generation")
          ->excludes(compare);
  command
      ->add_flag("--side-by-side", arguments->models.side_by_side,
                 "all configs in turns, a block each in every one of --steps rounds, after a round that does not "
                 "count: medians, and the ratio to the first config")
      ->needs(inference);
  command
      ->add_option("--vary", arguments->models.vary,
                   "section.key=v1,v2,..: each config with each of these values, as in engram sweep")
      ->value_name("KEY=VALUES");
  Option* softmax =
      command
          ->add_flag("--softmax", arguments->softmax,
                     "input and output of a word model alone: V=267735, d=512, cut-offs 20000, 40000 and 200000 "
                     "(in proportion for another --vocab), "
                     "against the floor of its products and beside a softmax over all words [no config]")
          ->excludes(compare)
          ->excludes(inference);
  command
      ->add_option("--tokens", arguments->shared.tokens,
                   "of a step with --softmax [4096; at most 512 with all words] or --memory [1024]")
      ->positive();
  Option* vanilla = arguments->vanilla.add_to(*command);
  vanilla->excludes(compare)->excludes(inference)->excludes(softmax);
  for (const char* other : {"--dtype", "--spans", "--filter", "--product-size"})
    vanilla->excludes(command->get_option(other));
  Option* memory = arguments->product_keys.add_to(*command);
  memory->excludes(compare)->excludes(inference)->excludes(softmax)->excludes(vanilla);
  for (const char* other : {"--config", "--set", "--filter", "--vocab", "--spans", "--dtype"})
    memory->excludes(command->get_option(other));
  Option* cost = arguments->cost.add_to(*command);
  cost->excludes(compare)->excludes(inference)->excludes(softmax)->excludes(vanilla)->excludes(memory);
  for (const char* other : {"--filter", "--product-size"}) cost->excludes(command->get_option(other));
  command
      ->add_option(
          "--one-rank-ms", arguments->models.one_rank_ms,
          "several ranks (docs/guide/several-processes.md): milliseconds of a step of one, that they are compared "
          "with [rank 0 measures it first]")
      ->within(1e-3, 1e9)
      ->excludes(compare)
      ->excludes(inference)
      ->excludes(softmax)
      ->excludes(vanilla)
      ->excludes(memory)
      ->excludes(cost);
  command->add_option("--svg", arguments->shared.svg,
                      "draw times by parameters; with --against-vanilla, by attention length");
  command->add_flag("--json", arguments->shared.json, "print one JSON object");
  command->callback([arguments, ranks] {
    OneRank alone;
    run_bench(*arguments, ranks != nullptr ? *ranks : alone);
  });
  return command;
}

}  // namespace engram
