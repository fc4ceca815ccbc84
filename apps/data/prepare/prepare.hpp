#pragma once
/// `engram prepare`: from text files to a data folder (data_set.hpp). Everything is read and checked before anything is
/// written, and all files are on the disk under partial names before the first one takes its name: whatever fails
/// before that, an older data set in the folder stays as it was. Words with the ids of a list are the exception to
/// reading first: their files, which may be larger than memory, are read piece by piece while partial files grow. So
/// are those of subwords, which are checked first and then read again.

#include "apps/data/prepare/options.hpp"
#include "apps/data/prepare/summary.hpp"

namespace engram::data {

/// Throws UsageError for options that are wrong or exclude each other, FileError for what is wrong with a text (see
/// corpus.hpp and word_corpus.hpp), a byte or word that the vocabulary lacks, and a folder that cannot be written or
/// holds other files.
PrepareSummary prepare(const PrepareOptions& options);

}  // namespace engram::data
