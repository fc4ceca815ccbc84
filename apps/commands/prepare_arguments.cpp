#include "apps/commands/prepare_arguments.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <system_error>

#include "apps/data/data_set.hpp"
#include "apps/data/prepare/named_rules.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

bool parse_newlines(const std::string& name) {
  if (name == "keep" || name == "drop") return name == "drop";
  throw UsageError(text("prepare: --newlines must be keep or drop, got '", name, "'"));
}

/// Of a run, a checkpoint or a data folder.
data::GivenVocabulary read_given(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::exists(path / data::kDataFile, ignored))
    return {data::Vocabulary::load(path / data::kVocabularyFile), data::read_text_rules(path), path.string()};
  CheckpointFacts facts = read_facts(CheckpointFile(find_checkpoint(path, CheckpointKind::newest)));
  return {std::move(facts.vocabulary), std::move(facts.text), path.string()};
}

}  // namespace

void PrepareArguments::add_to(Command& command) {
  command_ = &command;
  add_source_options(command);
  add_character_options(command);
  add_word_options(command);
  add_article_options(command);
  add_subword_options(command);
  add_tokenizer_options(command);
  command.add_flag("--json", json, "print the summary as one JSON object");
}

void PrepareArguments::add_source_options(Command& command) {
  command
      .add_option("--kind", kind_,
                  "what a token is: char (a byte), word (UTF-8, between white space) or bpe (a part of a word)")
      ->suggest({"char", "word", "bpe"})
      ->capture_default_str();
  command.add_option("--text", text_, "one text file, to be split")->value_name("FILE");
  command
      .add_option("--split", split_,
                  "shares of --text in percent: train,valid,test [90,5,5]; words and bpe are cut at line ends; of the "
                  "tokens of --articles [90.4,4.8,4.8]")
      ->value_name("X,X,X");
  command
      .add_option("--train", train_, "file of the training text, instead of --text; of bpe and articles also a folder")
      ->value_name("PATH");
  command.add_option("--valid", valid_, "file of the validation text")->value_name("PATH");
  command.add_option("--test", test_, "file of the test text")->value_name("PATH");
  command
      .add_option("--rules", rules_,
                  "all rules of a published corpus: enwik8, enwik8-bytes, text8, wikitext-103, lm1b, lm1b-sentences or "
                  "ptb; options given beside it replace theirs")
      ->suggest({"enwik8", "enwik8-bytes", "text8", "wikitext-103", "lm1b", "lm1b-sentences", "ptb"})
      ->value_name("CORPUS");
  command
      .add_option("--vocabulary-of", vocabulary_of_,
                  "ids, --kind and rules of words are those of this run, checkpoint or data folder; a split that is "
                  "not given is one that is")
      ->value_name("RUN");
  command
      .add_option("--join", join_,
                  "word, bpe: what cut the words, so that generate joins them again: spaces (nothing), wikitext, penn "
                  "or moses [as --rules, --articles and --tokenizer say]")
      ->suggest({"spaces", "wikitext", "penn", "moses"});
  command.add_option("--out", out, "folder to write; made if it does not exist")->required();
}

void PrepareArguments::add_character_options(Command& command) {
  command
      .add_option(
          "--characters", characters_,
          "char: what the text is and how it is cut: any; enwik8 or text8, 90, 5 and 5 million characters of it")
      ->suggest({"any", "enwik8", "text8"})
      ->capture_default_str();
  command.add_option("--rule", old_rule, "the old name of --characters")->hidden();
  command.add_flag("--exact-bytes", exact_bytes_, "char: never append an end token to a split");
  command
      .add_option("--vocabulary-from", vocabulary_from_,
                  "char: splits that the characters are collected from: train or all")
      ->suggest({"train", "all"})
      ->capture_default_str();
  command.add_option("--newlines", newlines_, "char: keep, or drop: no newline is a token")
      ->suggest({"keep", "drop"})
      ->capture_default_str();
  command.add_option("--ids", ids_, "char: ids by first appearance (seen) or by decreasing count")
      ->suggest({"seen", "count"})
      ->capture_default_str();
}

void PrepareArguments::add_word_options(Command& command) {
  command.add_option("--eol", eol_, "word: keep (a token <eos> after every line) or drop")
      ->suggest({"keep", "drop"})
      ->capture_default_str();
  command
      .add_option("--ties", ties_,
                  "word: which of two equally frequent words gets the smaller id: the one first seen later, or first")
      ->suggest({"later", "first"})
      ->capture_default_str();
  command
      .add_option("--oov", oov_,
                  "word: words that train lacks are an error or unk (<unk>); those that --vocabulary-of lacks unk, if "
                  "it has that")
      ->suggest({"error", "unk"})
      ->capture_default_str();
  command.add_option("--min-count", min_count_, "word: words that train has fewer times become <unk>, of articles UNK")
      ->positive()
      ->capture_default_str();
  command.add_option("--eos-id", eos_id_, "word: the id of <eos>: by its count, or first (0)")
      ->suggest({"count", "first"})
      ->capture_default_str();
  command.add_option("--count-from", count_from_, "word: splits whose words get ids: train or all")
      ->suggest({"train", "all"})
      ->capture_default_str();
  command.add_flag("--lower", lower_, "word: A to Z become a to z");
  command.add_option("--word-list", word_list_,
                     "word: file of the vocabulary, a word a line; --train, --valid and --test may then be folders, as "
                     "with --articles");
  command
      .add_option("--sentences", sentences_,
                  "word, with --word-list: <S> around every line, or one between two; none: line ends as --eol says")
      ->suggest({"none", "around", "between"})
      ->capture_default_str();
}

void PrepareArguments::add_subword_options(Command& command) {
  command
      .add_option("--vocabulary", vocabulary_,
                  "bpe: how many subwords to learn from train, its letters and 256 bytes among them")
      ->positive()
      ->capture_default_str();
  command.add_option("--bpe-sample", bpe_sample_, "bpe: learn from about so many bytes of lines all over train")
      ->positive()
      ->capture_default_str();
  command.add_option("--bpe-model", bpe_model_,
                     "bpe: file of a SentencePiece model, or vocabulary.model of a data folder, instead of learning");
  command.add_option("--bpe-codes", bpe_codes_,
                     "bpe: file of codes by fastBPE or subword-nmt; words are between spaces, @@ joins their parts");
  command.add_option("--bpe-vocabulary", bpe_vocabulary_,
                     "bpe, with --bpe-codes: file of the subwords and their counts, by the same programs [those that "
                     "train has]");
  command
      .add_option("--bpe-threshold", bpe_threshold_,
                  "bpe, with --bpe-codes: subwords with a smaller count are not in the vocabulary")
      ->positive();
}

void PrepareArguments::add_tokenizer_options(Command& command) {
  command
      .add_option("--tokenizer", tokenizer_,
                  "bpe: none, or moses: words of English as the Moses toolkit cuts a line, punctuation apart")
      ->capture_default_str();
  command.add_flag("--moses-escape", moses_escape_,
                   "moses: & | < > ' \" [ ] become &amp; and so on, as Moses does unless told otherwise");
  command.add_flag("--moses-hyphens", moses_hyphens_, "moses: well-known becomes well @-@ known");
  command.add_option("--moses-prefixes", moses_prefixes_,
                     "moses: file of abbreviations that keep their full stops, one a line [a list of our own]");
}

void PrepareArguments::add_article_options(Command& command) {
  command
      .add_option(
          "--articles", articles_,
          "word, bpe: files and folders of articles, to be split; without one --train, --valid and --test name them")
      ->expected(0, std::numeric_limits<int>::max() / 2)
      ->value_name("PATH");
  command
      .add_option(
          "--format", format_,
          "articles: file (one each), doc (<doc ...> .. </doc>), wikitext (' = Title = '), cbt (raw books of the "
          "Children's Book Test), or auto: as each file's first line says")
      ->suggest({"auto", "file", "doc", "wikitext", "cbt"})
      ->capture_default_str();
  command.add_flag("--pretokenized", pretokenized_,
                   "articles: words are what is between white space; else punctuation is split off");
  command.add_flag("--sentence-lines", sentence_lines_,
                   "articles: every line is a sentence; else sentences end at . ! ? by rule");
  command.add_flag("--no-eos", no_eos_, "articles: no token </s> after every sentence");
  command.add_flag("--keep-numbers", keep_numbers_, "articles: numbers stay; else they all become N");
  command.add_flag("--chapters", chapters_, "articles, cbt: a line that begins with CHAPTER begins an article");
  command
      .add_option("--words", words_,
                  "articles: size of the vocabulary, UNK, N and </s> included: the most frequent words of train [all]")
      ->positive();
  command
      .add_option("--held-out", held_out_,
                  "articles: so many of them are valid, and as many test, instead of shares by --split")
      ->positive();
  command.add_option("--seed", seed_, "articles: chooses which of them are valid and test")->capture_default_str();
}

void PrepareArguments::set_rules(data::PrepareOptions& options) const {
  if (given("--rules")) data::set_named_rules(rules_, options);
  const data::TokenKind kind = parse_named<data::TokenKind>("prepare: --kind", kind_);
  if (given("--rules") && given("--kind") && kind != options.kind)
    throw UsageError(
        text("prepare: the rules ", rules_, " are for ", data::plural_of(options.kind), ", got --kind ", kind_));
  if (given("--kind")) options.kind = kind;
  if (given("--characters") && given("--rule"))
    throw UsageError("prepare: --rule is the old name of --characters, got both");
  if (given("--characters")) options.rule = data::parse_text_rule(characters_);
  if (given("--rule")) options.rule = data::parse_text_rule(old_rule);
  if (given("--exact-bytes")) options.exact_bytes = exact_bytes_;
  if (given("--newlines")) options.drop_newlines = parse_newlines(newlines_);
  if (given("--vocabulary-from"))
    options.vocabulary_from = parse_named<data::VocabularyFrom>("prepare: --vocabulary-from", vocabulary_from_);
  if (given("--ids")) options.byte_order = parse_named<data::ByteOrder>("prepare: --ids", ids_);
  if (given("--eol")) options.words.end_of_line = data::parse_end_of_line(eol_);
  if (given("--ties")) options.words.ties = parse_named<data::TieOrder>("prepare: --ties", ties_);
  if (given("--oov")) options.words.unseen = parse_named<data::UnseenWords>("words: --oov", oov_);
  if (given("--min-count")) options.words.min_count = min_count_;
  if (given("--eos-id")) options.words.end_first = data::parse_end_id(eos_id_);
  if (given("--count-from")) options.words.count_all = data::parse_count_from(count_from_);
  if (given("--lower")) options.words.lower = lower_;
  if (given("--vocabulary")) options.subwords.vocabulary = vocabulary_;
  if (given("--bpe-sample")) options.subwords.sample = bpe_sample_;
  options.subwords.model = bpe_model_;
  options.subwords.codes = bpe_codes_;
  options.subwords.list = bpe_vocabulary_;
  if (given("--bpe-threshold")) options.subwords.threshold = bpe_threshold_;
  if (given("--join")) options.join = parse_named<data::WordJoin>("prepare: --join", join_);
  if (given("--sentences"))
    options.words.sentences = parse_named<data::SentenceMarks>("prepare: --sentences", sentences_);
}

void PrepareArguments::set_article_rules(data::PrepareOptions& options) const {
  if (!given("--articles")) {
    for (const char* name : {"--format", "--pretokenized", "--sentence-lines", "--no-eos", "--keep-numbers",
                             "--chapters", "--words", "--held-out", "--seed"})
      if (given(name)) throw UsageError(text("prepare: ", name, " works with --articles, got it without"));
    return;
  }
  for (const char* name : {"--eol", "--ties", "--oov", "--eos-id", "--count-from", "--sentences", "--rules"})
    if (given(name))
      throw UsageError(text("prepare: ", name, " is not for articles, got it with --articles",
                            "\n  articles of words have --no-eos, --words and --min-count; words that they lack "
                            "become ",
                            data::kUnknownWord));
  data::ArticleRules& rules = options.articles.emplace();
  if (options.given && options.given->text.articles) rules = *options.given->text.articles;
  rules.words.reset();
  rules.held_out.reset();
  rules.paths.clear();
  for (const std::string& path : articles_)
    if (!path.empty()) rules.paths.emplace_back(path);
  if (!options.given || given("--format"))
    rules.format = parse_named<data::ArticleFormat>("prepare: --format", format_);
  rules.pretokenized |= pretokenized_;
  rules.sentence_lines |= sentence_lines_;
  rules.sentence_end &= !no_eos_;
  rules.keep_numbers |= keep_numbers_;
  rules.chapters |= chapters_;
  if (given("--words")) rules.words = words_;
  if (given("--held-out")) rules.held_out = held_out_;
  rules.seed = seed_;
}

void PrepareArguments::set_tokenizer(data::PrepareOptions& options) const {
  if (tokenizer_ != "none" && tokenizer_ != "moses")
    throw UsageError(text("prepare: --tokenizer must be none or moses, got '", tokenizer_, "'"));
  if (tokenizer_ == "none") {
    for (const char* name : {"--moses-escape", "--moses-hyphens", "--moses-prefixes"})
      if (given(name)) throw UsageError(text("prepare: ", name, " works with --tokenizer moses, got it without"));
    return;
  }
  data::MosesRules& rules = options.tokenizer.emplace();
  rules.escape = moses_escape_;
  rules.hyphens = moses_hyphens_;
  if (given("--moses-prefixes")) rules.prefixes = data::read_moses_prefixes(moses_prefixes_);
}

void PrepareArguments::set_given_vocabulary(data::PrepareOptions& options) const {
  if (!given("--vocabulary-of")) return;
  for (const char* name :
       {"--rules",         "--vocabulary-from", "--ids",        "--eol",       "--ties",      "--min-count",
        "--eos-id",        "--count-from",      "--word-list",  "--sentences", "--words",     "--no-eos",
        "--keep-numbers",  "--vocabulary",      "--bpe-sample", "--bpe-model", "--bpe-codes", "--bpe-vocabulary",
        "--bpe-threshold", "--tokenizer"})
    if (given(name))
      throw UsageError(text("prepare: --vocabulary-of has a vocabulary and rules of its own, got ", name,
                            " too\n  leave either away"));
  const auto model = std::make_shared<const data::GivenVocabulary>(read_given(vocabulary_of_));
  options.given = model;
  options.kind = model->vocabulary.kind();
  if (given("--kind") && parse_named<data::TokenKind>("prepare: --kind", kind_) != options.kind)
    throw UsageError(text("prepare: --kind must be that of --vocabulary-of, ", name_of(options.kind), ", got ", kind_));
  const data::WordVocabulary* const words = model->vocabulary.words();
  if (words != nullptr && !given("--oov") && words->unknown_token() >= 0) options.words.unseen = data::UnseenWords::unk;
}

data::PrepareOptions PrepareArguments::options() const {
  data::PrepareOptions options;
  set_given_vocabulary(options);
  set_rules(options);
  set_article_rules(options);
  set_tokenizer(options);
  options.text = text_;
  if (!split_.empty()) options.split = data::parse_percentages(split_);
  options.train = train_;
  options.valid = valid_;
  options.test = test_;
  options.out = out;
  options.word_list = word_list_;
  if (given("--text") && text_.empty()) throw UsageError("prepare: --text must name a file, got an empty name");
  return options;
}

}  // namespace engram
