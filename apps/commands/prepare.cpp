#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/named_rules.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

struct PrepareArguments {
  std::string kind = "char";
  std::string text, train, valid, test, out;
  std::string split;  ///< percent
  std::string characters = "any", old_rule;
  std::string vocabulary_from = "train";
  std::string newlines = "keep", ids = "seen";
  std::string eol = "keep", ties = "later", oov = "error", eos_id = "count", count_from = "train", sentences = "none";
  std::string rules;  ///< a name that sets all the rules
  std::string word_list;
  std::int64_t min_count = 1;
  std::int64_t vocabulary = data::SubwordRules::kUsualVocabulary, bpe_sample = data::SubwordRules::kUsualSample;
  std::string bpe_model;
  bool exact_bytes = false;
  bool lower = false;
  std::vector<std::string> articles;
  std::string format = "auto";
  std::int64_t words = 0;
  std::uint64_t seed = data::ArticleRules{}.seed;
  bool pretokenized = false, sentence_lines = false, no_eos = false, keep_numbers = false, chapters = false;
  bool json = false;
};

bool parse_newlines(const std::string& name) {
  if (name == "keep" || name == "drop") return name == "drop";
  throw UsageError(text("prepare: --newlines must be keep or drop, got '", name, "'"));
}

nlohmann::json as_json(const data::PrepareSummary& summary, const std::string& out, bool replaced) {
  nlohmann::json splits = nlohmann::json::object();
  for (const data::SplitSummary& split : summary.splits) {
    nlohmann::json one{{"source", split.source},
                       {"bytes", split.bytes},
                       {"stripped", split.stripped},
                       {"end_appended", split.end_appended},
                       {"newlines_dropped", split.newlines_dropped},
                       {"tokens", split.tokens},
                       {"words", split.words},
                       {"hash", data::hash_text(split.content_hash)}};
    if (summary.kind == data::TokenKind::word) {
      one["end_tokens"] = split.end_tokens;
      one["unknown"] = split.unknown;
      one["certain_marks"] = split.certain_marks;
    }
    if (split.articles > 0) {
      one["articles"] = split.articles;
      one["coverage"] = split.coverage();
    }
    if (summary.kind == data::TokenKind::subword) one.update({{"unknown", split.unknown}, {"altered", split.altered}});
    splits[std::string(split.name)] = std::move(one);
  }
  return {{"out", out},
          {"replaced", replaced},
          {"kind", name_of(summary.kind)},
          {"vocabulary", summary.vocabulary_size},
          {"vocabulary_hash", data::hash_text(summary.vocabulary_hash)},
          {"splits", splits},
          {"notes", summary.notes}};
}

/// A table of the splits; for words with a column of line ends or articles, for subwords with one of words.
std::string table_of(const data::PrepareSummary& summary) {
  const bool words = summary.kind == data::TokenKind::word, subwords = summary.kind == data::TokenKind::subword;
  const auto more = [&](std::string_view cell) {
    return words ? fmt::format(" {:>10}", cell) : subwords ? fmt::format(" {:>12}", cell) : std::string();
  };
  const bool articles = summary.splits[0].articles > 0;
  std::string lines = fmt::format("{:<6} {:>12} {:>12}{}  {}\n", "split", "bytes", "tokens",
                                  more(articles ? "articles"
                                       : words  ? "line ends"
                                                : "words"),
                                  "source");
  for (const data::SplitSummary& split : summary.splits)
    lines += fmt::format("{:<6} {:>12} {:>12}{}  {}\n", split.name, split.bytes, split.tokens,
                         more(std::to_string(articles ? split.articles
                                             : words  ? split.end_tokens
                                                      : split.words)),
                         split.source);
  return lines;
}

/// The rules: those of --rules, if it is given, and in their place those that are given by themselves.
void set_rules(const PrepareArguments& arguments, const Command& command, data::PrepareOptions& options) {
  const auto given = [&command](const char* name) { return command.count(name) > 0; };
  if (given("--rules")) data::set_named_rules(arguments.rules, options);
  const data::TokenKind kind = parse_named<data::TokenKind>("prepare: --kind", arguments.kind);
  if (given("--rules") && given("--kind") && kind != options.kind)
    throw UsageError(text("prepare: the rules ", arguments.rules, " are for ", data::plural_of(options.kind),
                          ", got --kind ", arguments.kind));
  if (given("--kind")) options.kind = kind;
  if (given("--characters") && given("--rule"))
    throw UsageError("prepare: --rule is the old name of --characters, got both");
  if (given("--characters")) options.rule = data::parse_text_rule(arguments.characters);
  if (given("--rule")) options.rule = data::parse_text_rule(arguments.old_rule);
  if (given("--exact-bytes")) options.exact_bytes = arguments.exact_bytes;
  if (given("--newlines")) options.drop_newlines = parse_newlines(arguments.newlines);
  if (given("--vocabulary-from"))
    options.vocabulary_from =
        parse_named<data::VocabularyFrom>("prepare: --vocabulary-from", arguments.vocabulary_from);
  if (given("--ids")) options.byte_order = parse_named<data::ByteOrder>("prepare: --ids", arguments.ids);
  if (given("--eol")) options.words.end_of_line = data::parse_end_of_line(arguments.eol);
  if (given("--ties")) options.words.ties = parse_named<data::TieOrder>("prepare: --ties", arguments.ties);
  if (given("--oov")) options.words.unseen = parse_named<data::UnseenWords>("words: --oov", arguments.oov);
  if (given("--min-count")) options.words.min_count = arguments.min_count;
  if (given("--eos-id")) options.words.end_first = data::parse_end_id(arguments.eos_id);
  if (given("--count-from")) options.words.count_all = data::parse_count_from(arguments.count_from);
  if (given("--lower")) options.words.lower = arguments.lower;
  if (given("--vocabulary")) options.subwords.vocabulary = arguments.vocabulary;
  if (given("--bpe-sample")) options.subwords.sample = arguments.bpe_sample;
  options.subwords.model = arguments.bpe_model;
  if (given("--sentences"))
    options.words.sentences = parse_named<data::SentenceMarks>("prepare: --sentences", arguments.sentences);
}

/// The rules of articles, if they are wanted.
void set_article_rules(const PrepareArguments& arguments, const Command& command, data::PrepareOptions& options) {
  const auto given = [&command](const char* name) { return command.count(name) > 0; };
  if (!given("--articles")) {
    for (const char* name : {"--format", "--pretokenized", "--sentence-lines", "--no-eos", "--keep-numbers",
                             "--chapters", "--words", "--seed"})
      if (given(name)) throw UsageError(text("prepare: ", name, " works with --articles, got it without"));
    return;
  }
  for (const char* name : {"--eol", "--ties", "--oov", "--eos-id", "--count-from", "--sentences", "--rules"})
    if (given(name))
      throw UsageError(text("prepare: ", name, " is not for articles, got it with --articles",
                            "\n  articles have --no-eos, --words and --min-count; words that they lack become ",
                            data::kUnknownWord));
  data::ArticleRules& rules = options.articles.emplace();
  for (const std::string& path : arguments.articles)
    if (!path.empty()) rules.paths.emplace_back(path);
  rules.format = parse_named<data::ArticleFormat>("prepare: --format", arguments.format);
  rules.pretokenized = arguments.pretokenized;
  rules.sentence_lines = arguments.sentence_lines;
  rules.sentence_end = !arguments.no_eos;
  rules.keep_numbers = arguments.keep_numbers;
  rules.chapters = arguments.chapters;
  if (given("--words")) rules.words = arguments.words;
  rules.seed = arguments.seed;
}

void run_prepare(const PrepareArguments& arguments, const Command& command) {
  data::PrepareOptions options;
  set_rules(arguments, command, options);
  set_article_rules(arguments, command, options);
  options.text = arguments.text;
  if (!arguments.split.empty()) options.split = data::parse_percentages(arguments.split);
  options.train = arguments.train;
  options.valid = arguments.valid;
  options.test = arguments.test;
  options.out = arguments.out;
  options.word_list = arguments.word_list;
  if (command.count("--text") > 0 && arguments.text.empty())
    throw UsageError("prepare: --text must name a file, got an empty name");
  std::error_code ignored;
  const bool replaced = std::filesystem::exists(options.out / data::kDataFile, ignored);
  WorkProgress progress("preparing");
  options.watch = {.begin = [&progress](const std::string& what) { progress.begin(what, "bytes"); },
                   .at = progress.watch()};
  const data::PrepareSummary summary = data::prepare(options);
  progress.end();

  std::string lines = table_of(summary);
  for (const std::string& note : summary.notes) lines += "note: " + note + "\n";
  if (command.count("--rule") > 0)
    lines += text("note: --rule is called --characters now (--characters ", arguments.old_rule,
                  "); --rules is another option, of whole published preparations\n");
  lines +=
      fmt::format("vocabulary of {} {}; prepared in {}{}\n", summary.vocabulary_size, data::plural_of(summary.kind),
                  arguments.out, replaced ? ", in the place of the data set that was there" : "");
  std::fwrite(lines.data(), 1, lines.size(), stderr);
  if (arguments.json) print_json(as_json(summary, arguments.out, replaced));
}

void add_article_options(Command& command, PrepareArguments& arguments) {
  command
      .add_option("--articles", arguments.articles,
                  "word: files and folders of articles, to be split; without one --train, --valid and --test name them")
      ->expected(0, std::numeric_limits<int>::max() / 2)
      ->value_name("PATH");
  command
      .add_option(
          "--format", arguments.format,
          "articles: file (one each), doc (<doc ...> .. </doc>), wikitext (' = Title = '), cbt (raw books of the "
          "Children's Book Test), or auto: as each file's first line says")
      ->capture_default_str();
  command.add_flag("--pretokenized", arguments.pretokenized,
                   "articles: words are what is between white space; else punctuation is split off");
  command.add_flag("--sentence-lines", arguments.sentence_lines,
                   "articles: every line is a sentence; else sentences end at . ! ? by rule");
  command.add_flag("--no-eos", arguments.no_eos, "articles: no token </s> after every sentence");
  command.add_flag("--keep-numbers", arguments.keep_numbers, "articles: numbers stay; else they all become N");
  command.add_flag("--chapters", arguments.chapters,
                   "articles, cbt: a line that begins with CHAPTER begins an article");
  command
      .add_option("--words", arguments.words,
                  "articles: size of the vocabulary, UNK, N and </s> included: the most frequent words of train [all]")
      ->positive();
  command.add_option("--seed", arguments.seed, "articles: chooses which of them are valid and test")
      ->capture_default_str();
}

}  // namespace

Command* add_prepare_command(Command& program) {
  Command* command = program.add_subcommand("prepare", "turn text files into a data folder for training");
  const auto arguments = std::make_shared<PrepareArguments>();
  command
      ->add_option("--kind", arguments->kind,
                   "what a token is: char (a byte), word (UTF-8, between white space) or bpe (a part of a word)")
      ->capture_default_str();
  command->add_option("--text", arguments->text, "one text file, to be split")->value_name("FILE");
  command
      ->add_option("--split", arguments->split,
                   "shares of --text in percent: train,valid,test [90,5,5]; words and bpe are cut at line ends; of the "
                   "tokens of --articles [90.4,4.8,4.8]")
      ->value_name("X,X,X");
  command->add_option("--train", arguments->train, "file of the training text, instead of --text")->value_name("PATH");
  command->add_option("--valid", arguments->valid, "file of the validation text")->value_name("PATH");
  command->add_option("--test", arguments->test, "file of the test text")->value_name("PATH");
  command
      ->add_option(
          "--rules", arguments->rules,
          "all rules of a published corpus: enwik8, enwik8-bytes, text8, wikitext-103, lm1b, lm1b-sentences or "
          "ptb; options given beside it replace theirs")
      ->value_name("CORPUS");
  command->add_option("--out", arguments->out, "folder to write; made if it does not exist")->required();
  command
      ->add_option(
          "--characters", arguments->characters,
          "char: what the text is and how it is cut: any; enwik8 or text8, 90, 5 and 5 million characters of it")
      ->capture_default_str();
  command->add_option("--rule", arguments->old_rule, "the old name of --characters")->hidden();
  command->add_flag("--exact-bytes", arguments->exact_bytes, "char: never append an end token to a split");
  command
      ->add_option("--vocabulary-from", arguments->vocabulary_from,
                   "char: splits that the characters are collected from: train or all")
      ->capture_default_str();
  command->add_option("--newlines", arguments->newlines, "char: keep, or drop: no newline is a token")
      ->capture_default_str();
  command->add_option("--ids", arguments->ids, "char: ids by first appearance (seen) or by decreasing count")
      ->capture_default_str();
  command->add_option("--eol", arguments->eol, "word: keep (a token <eos> after every line) or drop")
      ->capture_default_str();
  command
      ->add_option("--ties", arguments->ties,
                   "word: which of two equally frequent words gets the smaller id: the one first seen later, or first")
      ->capture_default_str();
  command->add_option("--oov", arguments->oov, "word: what becomes of words that train lacks, error or unk (<unk>)")
      ->capture_default_str();
  command
      ->add_option("--min-count", arguments->min_count,
                   "word: words that train has fewer times become <unk>, of articles UNK")
      ->positive()
      ->capture_default_str();
  command->add_option("--eos-id", arguments->eos_id, "word: the id of <eos>: by its count, or first (0)")
      ->capture_default_str();
  command->add_option("--count-from", arguments->count_from, "word: splits whose words get ids: train or all")
      ->capture_default_str();
  command->add_flag("--lower", arguments->lower, "word: A to Z become a to z");
  command->add_option(
      "--word-list", arguments->word_list,
      "word: file of the vocabulary, a word a line; --train, --valid and --test may then be folders, as "
      "with --articles");
  command
      ->add_option("--sentences", arguments->sentences,
                   "word, with --word-list: <S> around every line, or one between two; none: line ends as --eol says")
      ->capture_default_str();
  add_article_options(*command, *arguments);
  command
      ->add_option("--vocabulary", arguments->vocabulary,
                   "bpe: how many subwords to learn from train, its letters and 256 bytes among them")
      ->positive()
      ->capture_default_str();
  command
      ->add_option("--bpe-sample", arguments->bpe_sample,
                   "bpe: learn from lines of about so many bytes, spread evenly over train")
      ->positive()
      ->capture_default_str();
  command->add_option("--bpe-model", arguments->bpe_model,
                      "bpe: file of a model of SentencePiece, instead of learning");
  command->add_flag("--json", arguments->json, "print the summary as one JSON object");
  command->callback([arguments, command] { run_prepare(*arguments, *command); });
  return command;
}

}  // namespace engram
