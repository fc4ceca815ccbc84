#include "apps/commands/attention_arguments.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

#include "apps/commands/output_file.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/studies/attention/window_study.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Options that only some families have.
struct FamilyOption {
  const char* name;
  std::vector<ModelFamily> families;
};
std::vector<FamilyOption> family_options() {
  using enum ModelFamily;
  return {{"--layer", {all_attention}},
          {"--head", {all_attention}},
          {"--slot-head", {all_attention}},
          {"--slots", {all_attention}},
          {"--rows", {all_attention, recurrent}},
          {"--term", {transformer_xl}},
          {"--mem-len", {transformer_xl}},
          {"--clamp-len", {transformer_xl}},
          {"--same-length", {transformer_xl}},
          {"--article", {recurrent}},
          {"--mean-csv", {recurrent}},
          {"--mean-svg", {recurrent}}};
}

}  // namespace

void AttentionArguments::add_to(Command& command) {
  command_ = &command;
  model.add_run(command);
  read.add_to(command);
  const std::string all = "all_attention: ", xl = "transformer_xl: ", recurrent = "recurrent: ";
  command.add_option("--layer", studied.layer, all + "layer of the head that is looked at closely, the first being 0")
      ->capture_default_str();
  command.add_option("--head", studied.head, all + "that head, the first being 0")->capture_default_str();
  command.add_flag(
      "--slot-head", studied.of_slots,
      all + "count --head among the heads that see slots only (attn_split, head_split, single_head, ff_attn)");
  command
      .add_option("--rows", studied.rows,
                  "queries in --csv and --svg: all_attention: the last ones of the text; recurrent: the first, or of "
                  "the article")
      ->positive()
      ->capture_default_str();
  command.add_option("--slots", slots, all + "slots whose tokens are shown: those that are used most")
      ->non_negative()
      ->capture_default_str();
  command.add_option("--csv", output.csv,
                     "write the weights of the head, of all by distance, or of windows to this file");
  command.add_option("--svg", output.svg,
                     "draw them: context, oldest first, then persistent slots; every head by distance; or windows");
  model.add_options(command);
  output.add_json(command);
  command.add_option("--term", term, xl + "the softmax of one part of the scores: a (q k), b (q r), c (u k), d (v r)")
      ->one_of({"a", "b", "c", "d"});
  command.add_option("--mem-len", memory_, xl + "positions remembered [the run's]")->non_negative();
  command.add_option("--clamp-len", clamp_, xl + "distances above it count as it; 0: none [the run's]")->non_negative();
  command.add_flag("--same-length", same_length_, xl + "every query sees as many positions as memory has");
  command
      .add_option("--article", article_,
                  recurrent + "which article of the split --csv and --svg show, the first being 0")
      ->needs(command.get_option("--data"))
      ->non_negative()
      ->capture_default_str();
  command.add_option("--mean-csv", mean_csv, recurrent + "write the mean weights by offset to this file");
  command.add_option("--mean-svg", mean_svg, recurrent + "draw them");
}

void AttentionArguments::check_files() const {
  // Of all families: which one it is is known when the model is read.
  output.check("attention", {"position,token,", "layer,head,distance,"});
  check_output_file("attention: --mean-csv", mean_csv, {"offset,weight\n"});
  check_output_file("attention: --mean-svg", mean_svg, {kSvgBeginning});
}

void AttentionArguments::refuse_given(ModelFamily family) const {
  for (const auto& [option, families] : family_options()) {
    if (command_->count(option) == 0 || std::ranges::find(families, family) != families.end()) continue;
    std::string names(name_of(families.front()));
    if (families.size() > 1) names += text(" and ", name_of(families.back()));
    throw UsageError(text("attention: ", option, " is for models of the ",
                          families.size() > 1 ? "families " : "family ", names, ", got ", name_of(family)));
  }
}

void AttentionArguments::prepare(ModelOptions& options) const {
  refuse_given(options.family);
  read.check();
  ContextOptions context;
  if (command_->count("--mem-len") > 0) context.memory = memory_;
  if (command_->count("--clamp-len") > 0) context.clamp = clamp_;
  if (same_length_) context.visibility = Visibility::last_memory;
  context.apply(options, "attention");
  if (options.family == ModelFamily::recurrent) WindowStudy::check(options.recurrent);
}

WindowReading AttentionArguments::reading() const {
  return {.data = read.data,
          .split = read.split,
          .tokens = read.most,
          .rows = studied.rows,
          .article = command_->count("--article") > 0 ? std::optional(article_) : std::nullopt};
}

}  // namespace engram
