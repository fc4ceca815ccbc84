#include "apps/commands/prepare.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/commands/output.hpp"
#include "apps/data/hash.hpp"
#include "apps/data/prepare.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct Arguments {
  std::string kind = "char";
  std::string text, train, valid, test, out;
  std::string split;  ///< percent
  std::string rule = "any";
  std::string vocabulary_from = "train";
  bool exact_bytes = false;
  bool json = false;
};

data::VocabularyFrom parse_vocabulary_from(const std::string& name) {
  if (name == "train") return data::VocabularyFrom::train;
  if (name == "all") return data::VocabularyFrom::all;
  throw UsageError(text("prepare: --vocabulary-from must be train or all, got '", name, "'"));
}

nlohmann::json as_json(const data::PrepareSummary& summary, const std::string& out) {
  nlohmann::json splits = nlohmann::json::object();
  for (const data::SplitSummary& split : summary.splits)
    splits[std::string(split.name)] = {{"source", split.source},     {"bytes", split.bytes},
                                       {"stripped", split.stripped}, {"end_appended", split.end_appended},
                                       {"tokens", split.tokens},     {"hash", data::hash_text(split.content_hash)}};
  return {{"out", out},
          {"vocabulary", summary.vocabulary_size},
          {"vocabulary_hash", data::hash_text(summary.vocabulary_hash)},
          {"splits", splits},
          {"notes", summary.notes}};
}

void run(const Arguments& arguments) {
  data::PrepareOptions options;
  options.kind = arguments.kind;
  options.rule = data::parse_text_rule(arguments.rule);
  options.text = arguments.text;
  if (!arguments.split.empty()) options.split = data::parse_percentages(arguments.split);
  options.train = arguments.train;
  options.valid = arguments.valid;
  options.test = arguments.test;
  options.out = arguments.out;
  options.exact_bytes = arguments.exact_bytes;
  options.vocabulary_from = parse_vocabulary_from(arguments.vocabulary_from);
  const data::PrepareSummary summary = data::prepare(options);

  std::string lines = fmt::format("{:<6} {:>12} {:>12}  {}\n", "split", "bytes", "tokens", "source");
  for (const data::SplitSummary& split : summary.splits)
    lines += fmt::format("{:<6} {:>12} {:>12}  {}\n", split.name, split.bytes, split.tokens, split.source);
  for (const std::string& note : summary.notes) lines += "note: " + note + "\n";
  lines += fmt::format("vocabulary of {} characters; prepared in {}\n", summary.vocabulary_size, arguments.out);
  std::fwrite(lines.data(), 1, lines.size(), stderr);
  if (arguments.json) print_json(as_json(summary, arguments.out));
}

}  // namespace

CLI::App* add_prepare_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("prepare", "turn text files into a data folder for training");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--kind", arguments->kind, "what a token is: char (a byte)")->capture_default_str();
  command->add_option("--text", arguments->text, "one text file, to be split");
  command->add_option("--split", arguments->split, "shares of --text in percent: train,valid,test [90,5,5]");
  command->add_option("--train", arguments->train, "file of the training text, instead of --text");
  command->add_option("--valid", arguments->valid, "file of the validation text");
  command->add_option("--test", arguments->test, "file of the test text");
  command
      ->add_option("--rule", arguments->rule, "any; enwik8 or text8: how the papers cut and tokenise these data sets")
      ->capture_default_str();
  command->add_option("--out", arguments->out, "folder to write; made if it does not exist")->required();
  command->add_flag("--exact-bytes", arguments->exact_bytes, "never append an end token to a split");
  command
      ->add_option("--vocabulary-from", arguments->vocabulary_from,
                   "splits that the characters are collected from: train or all")
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "print the summary as one JSON object");
  command->callback([arguments] { run(*arguments); });
  return command;
}

}  // namespace engram
