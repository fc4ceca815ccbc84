#pragma once
/// What preparing characters and preparing words have in common. Only the sources of prepare() include this.

#include <array>
#include <vector>

#include "apps/data/corpus.hpp"
#include "apps/data/folder_writer.hpp"
#include "apps/data/prepare.hpp"
#include "apps/data/vocabulary.hpp"

namespace engram::data {

/// The files that the options name: one text, or train, valid and test. Throws UsageError unless they name one of
/// these, FileError for a file that cannot be read.
std::vector<Source> read_sources(const PrepareOptions& options);
/// The same three as an array.
std::array<Source, 3> three(std::vector<Source> sources);

/// Completes the summary of splits that are written, writes data.json, and gives all files their names.
void finish(const PrepareOptions& options, const std::vector<Source>& sources, const Vocabulary& vocabulary,
            FolderWriter& writer, PrepareSummary& summary);

PrepareSummary prepare_characters(const PrepareOptions& options);
PrepareSummary prepare_words(const PrepareOptions& options);

}  // namespace engram::data
