#pragma once
/// Preparing each kind of tokens: what prepare() chooses from.

#include "apps/data/prepare/options.hpp"
#include "apps/data/prepare/summary.hpp"

namespace engram::data {

/// Throws UsageError for options of subwords.
void require_no_subword_options(const PrepareOptions& options);
/// Throws UsageError for rules of characters and of subwords.
void require_word_options(const PrepareOptions& options);
PrepareSummary prepare_characters(const PrepareOptions& options);
PrepareSummary prepare_words(const PrepareOptions& options);
/// Words with the ids of a list (PrepareOptions::word_list).
PrepareSummary prepare_listed_words(const PrepareOptions& options);
/// Words with the ids of a model (PrepareOptions::given), which with_given() has seen.
PrepareSummary prepare_given_words(const PrepareOptions& options);
/// Words in articles (PrepareOptions::articles).
PrepareSummary prepare_articles(const PrepareOptions& options);
PrepareSummary prepare_subwords(const PrepareOptions& options);

}  // namespace engram::data
