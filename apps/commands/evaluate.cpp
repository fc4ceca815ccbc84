#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands/model_arguments.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/report/npy.hpp"
#include "apps/run/evaluation/loss_report.hpp"
#include "apps/run/evaluation/score.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct EvaluateArguments {
  ModelArguments model;
  std::string data, per_token;
  std::string split = "valid";
  std::string same_length, carry;
  std::int64_t memory = 0, clamp = 0;
  NeuralCacheOptions cache;
  int batch = 0, block = 0, window = 0, stride = 1;
  bool exact = false, apart = false, json = false;
};

/// With more digits than a progress line, and for words bits too.
std::string precise_text(data::TokenKind kind, const MeanLoss& loss) {
  const double bits = loss.all / std::numbers::ln2;
  if (kind == data::TokenKind::character) return fmt::format("bpc {:.6f}", bits);
  const std::string all = fmt::format("bits {:.6f}  {} {:.7g}", bits, score_name(kind), std::exp(loss.all));
  const std::string eol = loss.no_eol ? fmt::format("  ppl_no_eol {:.7g}", std::exp(*loss.no_eol)) : "";
  return all + eol +
         (loss.no_certain_marks ? fmt::format("  ppl_no_certain_marks {:.7g}", std::exp(*loss.no_certain_marks)) : "");
}

/// What does not depend on what a token is: a line, or nothing where it is not known.
std::string text_loss_line(const data::TextAmount& text, std::int64_t tokens, double nll) {
  const TextLoss loss(text, tokens, nll);
  std::string line = loss.ppl_word ? fmt::format("ppl_word {:.7g}", *loss.ppl_word) : "";
  if (loss.bits_per_byte) line += fmt::format("{}bits_per_byte {:.6f}", line.empty() ? "" : "  ", *loss.bits_per_byte);
  if (line.empty()) return line;
  return line +
         fmt::format("  of {} words{}\n", text.words, text.bytes > 0 ? fmt::format(" and {} bytes", text.bytes) : "");
}

/// Of windows that read very much for each token that is scored.
void warn_of_reading(const SplitEvaluationOptions& options) {
  if (const std::int64_t reading = costly_reading(options); reading > 0)
    log(LogLevel::warning, text("--window ", options.window, " with --stride ", options.stride, " reads ", reading,
                                " tokens for each that is scored; a longer --stride reads fewer"));
}

ContextOptions context_of(const Command& command, const EvaluateArguments& arguments) {
  ContextOptions context;
  if (command.count("--mem-len") > 0) context.memory = arguments.memory;
  if (command.count("--clamp-len") > 0) context.clamp = arguments.clamp;
  if (command.count("--same-length") > 0) context.visibility = find_named<Visibility>(arguments.same_length);
  context.carry = carry_option(arguments.carry);
  return context;
}

void run_evaluate(const Command& command, const EvaluateArguments& arguments) {
  const ContextOptions context = context_of(command, arguments);
  if (arguments.cache.positions == 0 && command.count("--cache-theta") + command.count("--cache-lambda") > 0)
    throw UsageError("evaluate: --cache-theta and --cache-lambda are those of --cache, got none");
  if (arguments.window > 0 && (arguments.exact || command.count("--block") > 0))
    throw UsageError("evaluate: --window has a way and blocks of its own, got --exact or --block too");
  if (arguments.window == 0 && command.count("--stride") > 0)
    throw UsageError("evaluate: --stride is that of --window, got none");
  if (arguments.apart && (arguments.window == 0 || command.count("--stride") > 0))
    throw UsageError("evaluate: --apart is for --window without --stride, got no --window or a --stride");
  check_output_file("evaluate: --per-token", arguments.per_token, {kNpyBeginning});
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "evaluate",
                     [&context](ModelOptions& model) { context.apply(model, "evaluate"); });
  TrainedModel& trained = opened.trained;
  const data::DataSet data = opened.open_data(arguments.data);
  const data::TokenView tokens = data.split(arguments.split);

  std::vector<double> losses;
  if (!arguments.per_token.empty())
    losses.assign(static_cast<std::size_t>(tokens.size()), std::numeric_limits<double>::quiet_NaN());
  PartialLoss without_ends = PartialLoss::without_ends(tokens, trained.vocabulary());
  PartialLoss without_marks = PartialLoss::without_certain_marks(tokens, data.doubled_mark());
  progress.begin("scored", "tokens");
  const SplitEvaluationOptions options{.exact = arguments.exact,
                                       .batch = arguments.batch,
                                       .block = arguments.block,
                                       .window = arguments.window,
                                       .stride = arguments.stride,
                                       .apart = arguments.apart,
                                       .cache = arguments.cache,
                                       .watch = progress.watch(),
                                       .begins = [&options] { warn_of_reading(options); }};
  const auto [result, rows] =
      evaluate_split(trained, {data, arguments.split}, options, {.found = [&](std::int64_t token, double nll) {
                       without_ends.add(token, nll);
                       without_marks.add(token, nll);
                       if (!losses.empty()) losses[static_cast<std::size_t>(token)] = nll;
                     }});
  progress.end();
  if (!losses.empty()) write_npy(arguments.per_token, losses, trained.dtype());

  const data::TokenKind kind = trained.vocabulary().kind();
  const MeanLoss loss{.all = result.nll(), .no_eol = without_ends.mean(), .no_certain_marks = without_marks.mean()};
  const bool in_articles = trained.config().model.reads_articles(std::ssize(data.articles(arguments.split)));
  const char* way = arguments.apart        ? "windows"
                    : arguments.window > 0 ? "sliding"
                    : in_articles          ? "articles"
                    : arguments.exact      ? "exact"
                                           : "paper";
  // Of other windows it is another figure.
  const std::string in_windows =
      text(kind == data::TokenKind::subword ? "ppl_bpe_window" : "ppl_window", arguments.window);
  const std::optional<data::TextAmount> amount = data.text_amount(arguments.split);
  const std::vector<std::uint64_t> mapped = trained.mapped_bytes();
  const std::uint64_t mapped_bytes = std::accumulate(mapped.begin(), mapped.end(), std::uint64_t{0});
  if (arguments.json) {
    nlohmann::json object = loss_json(kind, loss);
    object.update({{"checkpoint", trained.path().string()},
                   {"step", trained.step()},
                   {"split", arguments.split},
                   {"way", way},
                   {"batch", rows},
                   {"tokens", result.scored},
                   {"tokens_in_split", tokens.size()},
                   {"tokens_per_second", result.tokens_per_second()}});
    if (trained.averaged_over() > 0) object["averaged_updates"] = trained.averaged_over();
    if (arguments.apart) object[in_windows] = std::exp(loss.all);
    if (const NeuralCacheOptions& cache = arguments.cache; cache.positions > 0)
      object["cache"] = {{"positions", cache.positions}, {"theta", cache.theta}, {"lambda", cache.lambda}};
    if (amount) object.update(amount_json(*amount, tokens.size(), loss.all));
    if (!mapped.empty()) object.update({{"mapped_tables", mapped.size()}, {"mapped_bytes", mapped_bytes}});
    print_json(object);
    return;
  }
  print(fmt::format("{} at step {}, split {}, {} evaluation with {} {}\n", trained.path().string(), trained.step(),
                    arguments.split, way, rows, rows == 1 ? "stream" : "streams"));
  if (trained.averaged_over() > 0)
    print(fmt::format("the weights are the mean of those of {} updates (training.weight_average)\n",
                      trained.averaged_over()));
  if (const NeuralCacheOptions& cache = arguments.cache; cache.positions > 0)
    print(
        fmt::format("with a cache of {} positions, theta {}, lambda {}\n", cache.positions, cache.theta, cache.lambda));
  if (!mapped.empty())
    print(fmt::format("{} mapped from {}, {:.2f} GiB in all\n", mapped.size() == 1 ? "a table is" : "tables are",
                      mapped.size() == 1 ? "a file" : text(mapped.size(), " files"),
                      static_cast<double>(mapped_bytes) / double(1 << 30)));
  print(fmt::format("nll {:.6f} nats  {}  scored {} of {} tokens  {:.0f} tokens/s\n", loss.all,
                    precise_text(kind, loss), result.scored, tokens.size(), result.tokens_per_second()));
  if (arguments.apart) print(fmt::format("{} {:.7g}\n", in_windows, std::exp(loss.all)));
  if (amount) print(text_loss_line(*amount, tokens.size(), loss.all));
}

}  // namespace

Command* add_evaluate_command(Command& program) {
  Command* command = program.add_subcommand("evaluate", "measure a model on a split of prepared data");
  const auto arguments = std::make_shared<EvaluateArguments>();
  arguments->model.add_run(*command);
  command->add_option("--data", arguments->data, "data folder that engram prepare wrote")->required();
  command->add_option("--split", arguments->split, "train, valid or test")->capture_default_str();
  command->add_flag("--exact", arguments->exact,
                    "score every token but the first; otherwise streams side by side, as the papers do");
  command
      ->add_option(
          "--batch", arguments->batch,
          "streams side by side; does not change exact results [8, other families than all_attention 10; with --exact "
          "at most 8, transformer_xl without --same-length and product_key 1]")
      ->positive();
  command
      ->add_option("--block", arguments->block,
                   "tokens of a stream per step; does not change exact results, but for product_key and transformer_xl "
                   "without --same-length [the run's; with --exact 256, but for the same]")
      ->positive();
  command->add_option("--window", arguments->window, "read so many tokens from nothing for every --stride new ones")
      ->positive();
  command->add_option("--stride", arguments->stride, "new tokens of each window")->positive()->capture_default_str();
  command->add_flag("--apart", arguments->apart,
                    "with --window: windows side by side, all but the first token of each scored (ppl_window)");
  command->add_option("--mem-len", arguments->memory, "transformer_xl: positions that layers remember [the run's]")
      ->non_negative();
  command
      ->add_option("--clamp-len", arguments->clamp,
                   "transformer_xl: distances above it count as it; 0: none [the run's]")
      ->non_negative();
  add_carry_option(*command, arguments->carry);
  command
      ->add_option("--cache", arguments->cache.positions,
                   "recurrent models: mix a cache of the last N positions of each text into the probabilities; 0: none")
      ->non_negative()
      ->capture_default_str();
  command->add_option("--cache-theta", arguments->cache.theta, "how sharply the cache prefers positions like this one")
      ->capture_default_str();
  command->add_option("--cache-lambda", arguments->cache.lambda, "the cache's share of the probabilities, below 1")
      ->capture_default_str();
  command
      ->add_option(
          "--same-length", arguments->same_length,
          "transformer_xl: every position sees --mem-len ones, itself among them (last_memory, or no value), one more "
          "(last_memory_plus_1) or all there are (all) [the run's]")
      ->one_of_or({"last_memory", "last_memory_plus_1", "all"}, "last_memory");  // what follows may be the run
  command->add_option("--per-token", arguments->per_token,
                      "write the loss of every token of the split, in nats, NaN where not scored (.npy, float32, "
                      "with --dtype f64 float64)");
  arguments->model.add_options(*command);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([command, arguments] { run_evaluate(*command, *arguments); });
  return command;
}

}  // namespace engram
