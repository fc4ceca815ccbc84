#pragma once
/// The tokens of a vocabulary that another program pickled, in the order of their ids.

#include <string_view>
#include <vector>

#include "apps/run/weights/pytorch/pytorch_file.hpp"

namespace engram {

/// The file's value is one of these, or its attributes as a dictionary: a vocabulary of Transformer-XL or of Hugging
/// Face's class for it (idx2sym), a corpus with one (vocab), a corpus of the adaptive-span program (_dictionary).
/// Valid as long as the file. Throws FileError for anything else, and for ids that are not 0, 1, 2, .. without holes.
std::vector<std::string_view> read_token_list(const PytorchFile& file);

}  // namespace engram
