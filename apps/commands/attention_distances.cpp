#include "apps/commands/attention_distances.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/data/data_set.hpp"
#include "apps/studies/attention/distance_pictures.hpp"
#include "apps/studies/attention/distance_study.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// None of an empty text; CLI11 has checked the others.
std::optional<ScoreTerm> term_of(const std::string& letter) {
  if (letter == "a") return ScoreTerm::content;
  if (letter == "b") return ScoreTerm::position;
  if (letter == "c") return ScoreTerm::content_bias;
  if (letter == "d") return ScoreTerm::position_bias;
  return std::nullopt;
}

std::string term_text(const std::string& letter) {
  return letter.empty() ? std::string() : fmt::format(", term ({}) alone", letter);
}

std::string table(const std::vector<HeadDistances>& heads, std::int64_t queries, const std::string& letter) {
  std::string lines = fmt::format("{} tokens read from the start of a text{}\n\n{:>5} {:>5} {:>9} {:>10}\n", queries,
                                  term_text(letter), "layer", "head", "entropy", "distance");
  for (const HeadDistances& head : heads)
    lines += fmt::format("{:>5} {:>5} {:>4.2f} bits {:>10.1f}\n", head.layer, head.head, head.entropy, head.distance);
  return lines + "\n(means over all queries; distance: positions back, 0 being the query's own)\n";
}

nlohmann::json as_json(const std::vector<HeadDistances>& heads, std::int64_t queries, const std::string& letter) {
  nlohmann::json object{{"tokens", queries}, {"heads", nlohmann::json::array()}};
  if (!letter.empty()) object["term"] = letter;
  for (const HeadDistances& head : heads)
    object["heads"].push_back({{"layer", head.layer},
                               {"head", head.head},
                               {"entropy_bits", head.entropy},
                               {"distance_positions", head.distance},
                               {"probability_by_distance", head.probability}});
  return object;
}

}  // namespace

Option* AttentionDistancesArguments::add_to(Command& command) {
  command_ = &command;
  const std::string both = "transformer_xl, recurrent: ", only = "transformer_xl: ";
  Option* folder = command.add_option("--data", data, both + "read a split of this data folder instead of a text");
  command.add_option("--split", split, both + "train, valid or test")->needs(folder)->capture_default_str();
  command.add_option("--tokens", tokens, both + "read so many of its first tokens [all]")->needs(folder)->positive();
  command
      .add_option("--term", term, only + "the softmax of one part of the scores: a (q k), b (q r), c (u k), d (v r)")
      ->one_of({"a", "b", "c", "d"});
  command.add_option("--mem-len", memory, only + "positions remembered [the run's]")->non_negative();
  command.add_option("--clamp-len", clamp, only + "distances above it count as it; 0: none [the run's]")
      ->non_negative();
  command.add_flag("--same-length", same_length, only + "every query sees as many positions as memory has");
  return folder;
}

ContextOptions AttentionDistancesArguments::context() const {
  ContextOptions context;
  if (command_->count("--mem-len") > 0) context.memory = memory;
  if (command_->count("--clamp-len") > 0) context.clamp = clamp;
  if (same_length) context.visibility = Visibility::last_memory;
  return context;
}

void AttentionDistancesArguments::refuse_given(std::string_view other, bool reads_splits) const {
  const auto refuse = [&](const char* option, std::string_view families) {
    if (command_->count(option) > 0)
      throw UsageError(text("attention: ", option, " is for models of the ", families, ", got ", other));
  };
  if (!reads_splits)
    for (const char* option : {"--data", "--split", "--tokens"})
      refuse(option, "families transformer_xl and recurrent");
  for (const char* option : {"--term", "--mem-len", "--clamp-len", "--same-length"})
    refuse(option, "family transformer_xl");
}

void show_attention_distances(OpenedModel& opened, const AttentionDistancesArguments& arguments,
                              std::span<const std::int32_t> text_tokens, const AttentionDistancesFiles& files,
                              WorkProgress& progress) {
  TrainedModel& trained = opened.trained;
  std::vector<std::int32_t> tokens(text_tokens.begin(), text_tokens.end());
  if (!arguments.data.empty()) {
    const data::DataSet data = opened.open_data(arguments.data);
    const data::TokenView split = data.split(arguments.split);
    for (std::int64_t i = 0; i < split.size(); ++i) tokens.push_back(split[i]);
  }
  if (arguments.tokens > 0 && arguments.tokens < std::ssize(tokens))
    tokens.resize(static_cast<std::size_t>(arguments.tokens));
  DistanceStudy study({dynamic_cast<TransformerXlModel&>(trained.model()), opened.runtime, trained.dtype()},
                      term_of(arguments.term));
  study.read(tokens, trained.config().training.block, progress.watch());
  progress.end();
  const std::vector<HeadDistances> heads = study.heads();
  if (!files.csv.empty()) write_durably(files.csv, distances_csv(heads));
  if (!files.svg.empty())
    write_durably(files.svg, distances_svg(heads, "Attention by distance" + term_text(arguments.term)));
  if (files.json) return print_json(as_json(heads, study.queries(), arguments.term));
  print(table(heads, study.queries(), arguments.term));
}

}  // namespace engram
