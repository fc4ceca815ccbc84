#include "apps/commands/prepare.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
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
  std::string eol = "keep", ties = "later", oov = "error";
  std::int64_t min_count = 1;
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
  for (const data::SplitSummary& split : summary.splits) {
    nlohmann::json one{{"source", split.source},     {"bytes", split.bytes},
                       {"stripped", split.stripped}, {"end_appended", split.end_appended},
                       {"tokens", split.tokens},     {"hash", data::hash_text(split.content_hash)}};
    if (summary.kind == data::TokenKind::word) {
      one["end_tokens"] = split.end_tokens;
      one["unknown"] = split.unknown;
    }
    splits[std::string(split.name)] = std::move(one);
  }
  return {{"out", out},
          {"kind", data::name_of(summary.kind)},
          {"vocabulary", summary.vocabulary_size},
          {"vocabulary_hash", data::hash_text(summary.vocabulary_hash)},
          {"splits", splits},
          {"notes", summary.notes}};
}

/// A table of the splits; for words with a column of line ends.
std::string table_of(const data::PrepareSummary& summary) {
  const bool words = summary.kind == data::TokenKind::word;
  const auto ends = [words](std::string_view cell) { return words ? fmt::format(" {:>10}", cell) : std::string(); };
  std::string lines =
      fmt::format("{:<6} {:>12} {:>12}{}  {}\n", "split", "bytes", "tokens", ends("line ends"), "source");
  for (const data::SplitSummary& split : summary.splits)
    lines += fmt::format("{:<6} {:>12} {:>12}{}  {}\n", split.name, split.bytes, split.tokens,
                         ends(std::to_string(split.end_tokens)), split.source);
  return lines;
}

void run(const Arguments& arguments) {
  data::PrepareOptions options;
  options.kind = data::parse_token_kind(arguments.kind);
  options.rule = data::parse_text_rule(arguments.rule);
  options.text = arguments.text;
  if (!arguments.split.empty()) options.split = data::parse_percentages(arguments.split);
  options.train = arguments.train;
  options.valid = arguments.valid;
  options.test = arguments.test;
  options.out = arguments.out;
  options.exact_bytes = arguments.exact_bytes;
  options.vocabulary_from = parse_vocabulary_from(arguments.vocabulary_from);
  options.words = {.end_of_line = data::parse_end_of_line(arguments.eol),
                   .ties = data::parse_ties(arguments.ties),
                   .unseen = data::parse_unseen(arguments.oov),
                   .min_count = arguments.min_count};
  const data::PrepareSummary summary = data::prepare(options);

  std::string lines = table_of(summary);
  for (const std::string& note : summary.notes) lines += "note: " + note + "\n";
  lines += fmt::format("vocabulary of {} {}; prepared in {}\n", summary.vocabulary_size, data::plural_of(summary.kind),
                       arguments.out);
  std::fwrite(lines.data(), 1, lines.size(), stderr);
  if (arguments.json) print_json(as_json(summary, arguments.out));
}

}  // namespace

CLI::App* add_prepare_command(CLI::App& program) {
  CLI::App* command = program.add_subcommand("prepare", "turn text files into a data folder for training");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("--kind", arguments->kind, "what a token is: char (a byte) or word (UTF-8, between white space)")
      ->capture_default_str();
  command->add_option("--text", arguments->text, "one text file, to be split");
  command->add_option("--split", arguments->split,
                      "shares of --text in percent: train,valid,test [90,5,5]; words are cut at line ends");
  command->add_option("--train", arguments->train, "file of the training text, instead of --text");
  command->add_option("--valid", arguments->valid, "file of the validation text");
  command->add_option("--test", arguments->test, "file of the test text");
  command
      ->add_option("--rule", arguments->rule,
                   "char: any; enwik8 or text8: how the papers cut and tokenise these data sets")
      ->capture_default_str();
  command->add_option("--out", arguments->out, "folder to write; made if it does not exist")->required();
  command->add_flag("--exact-bytes", arguments->exact_bytes, "char: never append an end token to a split");
  command
      ->add_option("--vocabulary-from", arguments->vocabulary_from,
                   "char: splits that the characters are collected from: train or all")
      ->capture_default_str();
  command->add_option("--eol", arguments->eol, "word: keep (a token <eos> after every line) or drop")
      ->capture_default_str();
  command
      ->add_option("--ties", arguments->ties,
                   "word: which of two equally frequent words gets the smaller id: the one first seen later, or first")
      ->capture_default_str();
  command->add_option("--oov", arguments->oov, "word: what becomes of words that train lacks, error or unk (<unk>)")
      ->capture_default_str();
  command->add_option("--min-count", arguments->min_count, "word: words that train has fewer times become <unk>")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "print the summary as one JSON object");
  command->callback([arguments] { run(*arguments); });
  return command;
}

}  // namespace engram
