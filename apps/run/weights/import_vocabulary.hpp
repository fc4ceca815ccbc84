#pragma once
/// The vocabulary that an imported model gets.

#include <cstdint>
#include <filesystem>

#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram {

/// `path`: a data folder; a text file with a token on every line; a vocabulary that another program pickled
/// (pytorch/token_list.hpp); or empty: the tokens are "<0>", "<1>", ... Words of a list end lines with "<eos>" where it
/// is one of them. Throws FileError for what cannot be read, UsageError for a vocabulary of another size than `size`.
data::Vocabulary read_import_vocabulary(const std::filesystem::path& path, std::int64_t size);

}  // namespace engram
