#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/data/prepare/prepare.hpp"

namespace engram {

/// What `engram prepare` takes.
struct PrepareArguments {
  std::string out, old_rule;
  bool json = false;

  /// Adds all options to the command, which must outlive this.
  void add_to(Command& command);
  /// Throws UsageError for options that are wrong or exclude each other, as far as prepare() does not.
  data::PrepareOptions options() const;

 private:
  void add_source_options(Command& command);
  /// The vocabulary of --vocabulary-of and the rules that come with it, if it is given.
  void set_given_vocabulary(data::PrepareOptions& options) const;
  void add_character_options(Command& command);
  void add_word_options(Command& command);
  void add_article_options(Command& command);
  void add_subword_options(Command& command);
  void add_tokenizer_options(Command& command);
  /// The rules: those of --rules, if it is given, and in their place those that are given by themselves.
  void set_rules(data::PrepareOptions& options) const;
  /// The rules of articles, if they are wanted.
  void set_article_rules(data::PrepareOptions& options) const;
  /// What makes words of lines first, if something does.
  void set_tokenizer(data::PrepareOptions& options) const;
  bool given(const char* name) const { return command_->count(name) > 0; }

  const Command* command_ = nullptr;
  std::string kind_ = "char";
  std::string text_, train_, valid_, test_;
  std::string split_;  // percent
  std::string characters_ = "any";
  std::string vocabulary_from_ = "train";
  std::string newlines_ = "keep", ids_ = "seen";
  std::string eol_ = "keep", ties_ = "later", oov_ = "error", eos_id_ = "count", count_from_ = "train",
              sentences_ = "none";
  std::string rules_;  // a name that sets all the rules
  std::string vocabulary_of_;
  std::string join_;
  std::string word_list_;
  std::int64_t min_count_ = 1;
  std::int64_t vocabulary_ = data::SubwordRules::kUsualVocabulary, bpe_sample_ = data::SubwordRules::kUsualSample;
  std::string bpe_model_, bpe_codes_, bpe_vocabulary_;
  std::int64_t bpe_threshold_ = 0;
  std::string tokenizer_ = "none", moses_prefixes_;
  bool moses_escape_ = false, moses_hyphens_ = false;
  bool exact_bytes_ = false;
  bool lower_ = false;
  std::vector<std::string> articles_;
  std::string format_ = "auto";
  std::int64_t words_ = 0, held_out_ = 0;
  std::uint64_t seed_ = data::ArticleRules{}.seed;
  bool pretokenized_ = false, sentence_lines_ = false, no_eos_ = false, keep_numbers_ = false, chapters_ = false;
};

}  // namespace engram
