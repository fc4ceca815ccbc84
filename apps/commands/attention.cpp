#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/commands/attention_distances.hpp"
#include "apps/commands/attention_windows.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/data/vocabulary/text_tokens.hpp"
#include "apps/studies/attention/attention_pictures.hpp"
#include "apps/studies/attention/attention_study.hpp"
#include "apps/studies/attention/distance_study.hpp"
#include "apps/studies/attention/window_study.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

struct AttentionArguments {
  ModelArguments model;
  std::string text, file, csv, svg;
  StudiedHead studied{.rows = 64};
  std::int64_t slots = 10;
  std::string oov = "error";
  bool json = false;
  AttentionDistancesArguments distances;
  AttentionWindowsArguments windows;
};

struct HeadsReport {
  std::vector<HeadAttention> heads;
  StudiedHead studied;
  std::vector<AttentionRow> rows;
  std::vector<SlotUse> slots;
  ReadTokens tokens;
};

std::string name_of(const HeadAttention& head) {
  return !head.sees_slots ? "context" : head.sees_context ? "both" : "slots";
}

std::string heads_table(const HeadsReport& report) {
  std::string lines =
      fmt::format("{} tokens read from the start of a text\n\n{:>5} {:>5} {:<8} {:>10} {:>10} {:>9} {:>10}\n",
                  report.tokens.size(), "layer", "head", "sees", "on slots", "on padding", "entropy", "distance");
  for (const HeadAttention& head : report.heads)
    lines += fmt::format("{:>5} {:>5} {:<8} {:>9.1f}% {:>9.1f}% {:>4.2f} bits {:>10.1f}\n", head.layer, head.head,
                         name_of(head), 100 * head.slot_share, 100 * head.padding_share, head.entropy, head.distance);
  return lines +
         "\n(means over all queries; distance: positions back, of the weight on the context; padding: zero "
         "vectors before the text)\n";
}

std::string slots_table(const HeadsReport& report) {
  if (report.slots.empty()) return "";
  const StudiedHead& head = report.studied;
  std::string lines =
      fmt::format("\nslots that layer {}, head {} uses most, and the tokens that excite them\n", head.layer, head.head);
  for (const SlotUse& use : report.slots) {
    lines += fmt::format("\nslot {:>5}  {:.2f}% of the weight\n", use.slot, 100 * use.share);
    for (const SlotHit& hit : use.hits)
      lines += fmt::format("  {:.4f}  at {:>6}  {}\n", hit.weight, hit.position, report.tokens.around(hit.position));
  }
  return lines;
}

json as_json(const HeadsReport& report) {
  json object{{"tokens", report.tokens.size()},
              {"layer", report.studied.layer},
              {"head", report.studied.head},
              {"heads", json::array()},
              {"slots", json::array()}};
  for (const HeadAttention& head : report.heads)
    object["heads"].push_back({{"layer", head.layer},
                               {"head", head.head},
                               {"sees", name_of(head)},
                               {"slot_share", head.slot_share},
                               {"padding_share", head.padding_share},
                               {"entropy_bits", head.entropy},
                               {"distance_positions", head.distance}});
  for (const SlotUse& use : report.slots) {
    json hits = json::array();
    for (const SlotHit& hit : use.hits)
      hits.push_back(
          {{"position", hit.position}, {"weight", hit.weight}, {"token", report.tokens.token(hit.position)}});
    object["slots"].push_back({{"slot", use.slot}, {"share", use.share}, {"tokens", hits}});
  }
  return object;
}

std::vector<std::int32_t> tokens_of(const Command& command, const AttentionArguments& arguments,
                                    const TrainedModel& trained) {
  // An empty text was given, too.
  const std::size_t given = command.count("--text") + command.count("--file");
  if (!arguments.distances.data.empty()) {
    if (given > 0) throw UsageError("attention: --data is a text of its own, got --text or --file too");
    if (arguments.oov != "error") throw UsageError("attention: --oov is for --text and --file, got --data");
    return {};
  }
  if (given != 1)
    throw UsageError(
        "attention: either --text or --file must be given, or, for a Transformer-XL or a recurrent model, --data");
  const std::string written = command.count("--text") > 0 ? arguments.text : data::read_bytes(arguments.file);
  std::vector<std::int32_t> tokens = data::text_tokens(
      written, trained.reading(parse_named<data::UnseenWords>("words: --oov", arguments.oov)), "attention", "the text");
  if (tokens.empty()) throw UsageError("attention: the text must have at least one token, got none");
  return tokens;
}

/// Options that only the all-attention family has; --rows is the recurrent one's too.
void refuse_given(const Command& command, ModelFamily family) {
  for (const char* option : {"--layer", "--head", "--slot-head", "--slots"})
    if (command.count(option) > 0)
      throw UsageError(
          text("attention: ", option, " is for models of the family all_attention, got ", name_of(family)));
  if (family != ModelFamily::recurrent && command.count("--rows") > 0)
    throw UsageError(
        text("attention: --rows is for models of the families all_attention and recurrent, got ", name_of(family)));
}

/// Makes the model one for studies. Throws UsageError for options and models that do not fit each other.
void prepare(const Command& command, const AttentionArguments& arguments, ModelOptions& model) {
  const ModelFamily family = model.family;
  if (family == ModelFamily::product_key)
    throw UsageError(
        "attention: the model must be of family all_attention, transformer_xl or recurrent, whose attention it shows, "
        "got product_key");
  if (family != ModelFamily::all_attention) refuse_given(command, family);
  if (family != ModelFamily::transformer_xl)
    arguments.distances.refuse_given(name_of(family), family == ModelFamily::recurrent);
  if (family != ModelFamily::recurrent) arguments.windows.refuse_given(name_of(family));
  if (family == ModelFamily::recurrent) return WindowStudy::check(model.recurrent);
  if (family == ModelFamily::all_attention) {
    model.all_attention = AttentionStudy::studied(model.all_attention);
  } else {
    arguments.distances.context().apply(model, "attention");
    model.transformer_xl = DistanceStudy::studied(model.transformer_xl);
  }
}

void run_attention(const Command& command, const AttentionArguments& arguments) {
  // Of all families: which one it is is known when the model is read.
  check_output_file("attention: --csv", arguments.csv, {"position,token,", "layer,head,distance,"});
  check_output_file("attention: --svg", arguments.svg, {kSvgBeginning});
  check_output_file("attention: --mean-csv", arguments.windows.mean_csv, {"offset,weight\n"});
  check_output_file("attention: --mean-svg", arguments.windows.mean_svg, {kSvgBeginning});
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "attention", [&](ModelOptions& model) { prepare(command, arguments, model); });
  TrainedModel& trained = opened.trained;
  const std::vector<std::int32_t> tokens = tokens_of(command, arguments, trained);
  const AttentionDistancesArguments& shared = arguments.distances;
  progress.begin("read", "tokens");
  if (trained.config().model.family == ModelFamily::transformer_xl)
    return show_attention_distances(opened, shared, tokens, {arguments.csv, arguments.svg, arguments.json}, progress);
  if (trained.config().model.family == ModelFamily::recurrent)
    return show_attention_windows(opened, arguments.windows, tokens,
                                  {.data = shared.data,
                                   .split = shared.split,
                                   .tokens = shared.tokens,
                                   .rows = arguments.studied.rows,
                                   .csv = arguments.csv,
                                   .svg = arguments.svg,
                                   .json = arguments.json},
                                  progress);
  AttentionStudy study({trained.all_attention("attention"), opened.runtime, trained.dtype()}, arguments.studied);
  study.read(tokens, trained.config().training.block, progress.watch());
  progress.end();

  const HeadsReport report{.heads = study.heads(),
                           .studied = arguments.studied,
                           .rows = {study.rows().begin(), study.rows().end()},
                           .slots = study.slots(static_cast<std::size_t>(arguments.slots)),
                           .tokens = ReadTokens(tokens, trained.vocabulary())};
  if (!arguments.csv.empty()) write_durably(arguments.csv, attention_csv(report.rows, report.tokens));
  if (!arguments.svg.empty())
    write_durably(arguments.svg,
                  attention_svg(report.rows, report.tokens,
                                fmt::format("layer {}, head {}{}", report.studied.layer, report.studied.head,
                                            report.studied.of_slots ? " of the slots" : "")));
  if (arguments.json) return print_json(as_json(report));
  print(heads_table(report) + slots_table(report));
}

}  // namespace

Command* add_attention_command(Command& program) {
  Command* command = program.add_subcommand("attention", "show where a trained model looks while it reads a text");
  const auto arguments = std::make_shared<AttentionArguments>();
  arguments->model.add_run(*command);
  command->add_option("--text", arguments->text, "text to read");
  command->add_option("--file", arguments->file, "file with the text to read");
  command
      ->add_option("--oov", arguments->oov,
                   "words that the model does not know: error, or unk for <unk>, in articles UNK")
      ->capture_default_str();
  command
      ->add_option("--layer", arguments->studied.layer,
                   "layer of the head that is looked at closely, the first being 0")
      ->capture_default_str();
  command->add_option("--head", arguments->studied.head, "that head, the first being 0")->capture_default_str();
  command->add_flag("--slot-head", arguments->studied.of_slots,
                    "count --head among the heads that see slots only (attn_split, head_split, single_head, ff_attn)");
  command
      ->add_option("--rows", arguments->studied.rows,
                   "queries in --csv and --svg: the last ones of the text; recurrent: the first, or of the article")
      ->positive()
      ->capture_default_str();
  command->add_option("--slots", arguments->slots, "slots whose tokens are shown: those that are used most")
      ->non_negative()
      ->capture_default_str();
  command->add_option("--csv", arguments->csv,
                      "write the weights of the head, of all by distance, or of windows to this file");
  command->add_option("--svg", arguments->svg,
                      "draw them: context, oldest first, then persistent slots; every head by distance; or windows");
  arguments->model.add_options(*command);
  command->add_flag("--json", arguments->json, "print one JSON object");
  arguments->windows.add_to(*command, arguments->distances.add_to(*command));
  command->callback([arguments, command] { run_attention(*command, *arguments); });
  return command;
}

}  // namespace engram
