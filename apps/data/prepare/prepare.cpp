#include "apps/data/prepare/prepare.hpp"

#include "apps/data/prepare/given_vocabulary.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "core/error.hpp"

namespace engram::data {

void require_no_subword_options(const PrepareOptions& options) {
  if (options.subwords != SubwordRules{})
    throw UsageError(
        text("prepare: --vocabulary and options that begin with --bpe- work with --kind bpe, got them with ",
             name_of(options.kind)));
  if (options.tokenizer)
    throw UsageError(text("prepare: --tokenizer works with --kind bpe, got it with ", name_of(options.kind)));
}

PrepareSummary prepare(const PrepareOptions& asked) {
  const PrepareOptions options = with_given(asked);
  if (options.kind == TokenKind::subword) return prepare_subwords(options);
  if (options.articles) return prepare_articles(options);
  if (options.kind == TokenKind::character) return prepare_characters(options);
  if (options.given) return prepare_given_words(options);
  return options.word_list.empty() ? prepare_words(options) : prepare_listed_words(options);
}

}  // namespace engram::data
