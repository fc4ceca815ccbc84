#pragma once
/// What preparing characters, words and subwords have in common. Only the sources of prepare() include this.

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/data/text/corpus.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/options.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram::data {

/// The files that the options name: one text, or train, valid and test. Throws UsageError unless they name one of
/// these.
std::vector<std::filesystem::path> source_paths(const PrepareOptions& options);
/// The same files, read: one text, or train, valid and test. Throws UsageError unless they name one of
/// these, FileError for a file that cannot be read.
std::vector<Source> read_sources(const PrepareOptions& options);
/// The same three as an array.
std::array<Source, 3> three(std::vector<Source> sources);

/// What data.json says about a file that was read.
struct SourceFacts {
  std::string name;
  std::int64_t bytes = 0;
  std::uint64_t hash = 0;  ///< of its bytes
};
std::vector<SourceFacts> facts_of(const std::vector<Source>& sources);

/// Completes the summary of splits that are written, writes data.json, and gives all files their names.
void finish(const PrepareOptions& options, const std::vector<SourceFacts>& sources, const Vocabulary& vocabulary,
            FolderWriter& writer, PrepareSummary& summary);

/// Throws UsageError for options of subwords.
void require_no_subword_options(const PrepareOptions& options);
/// Throws UsageError for rules of characters and of subwords.
void require_word_options(const PrepareOptions& options);
PrepareSummary prepare_characters(const PrepareOptions& options);
PrepareSummary prepare_words(const PrepareOptions& options);
/// Words with the ids of a list (PrepareOptions::word_list).
PrepareSummary prepare_listed_words(const PrepareOptions& options);
/// Words in articles (PrepareOptions::articles).
PrepareSummary prepare_articles(const PrepareOptions& options);
PrepareSummary prepare_subwords(const PrepareOptions& options);

}  // namespace engram::data
