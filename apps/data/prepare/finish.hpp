#pragma once
/// The end of every preparation.

#include <vector>

#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/options.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/prepare/summary.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram::data {

/// Completes the summary of splits that are written, writes data.json, and gives all files their names.
void finish(const PrepareOptions& options, const std::vector<SourceFacts>& sources, const Vocabulary& vocabulary,
            FolderWriter& writer, PrepareSummary& summary);

}  // namespace engram::data
