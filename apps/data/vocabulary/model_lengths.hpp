#pragma once
/// What is looked at before a library reads a model of subwords: it takes memory for every length that the file names,
/// up to 50 MB, before it sees that the file ends.

#include <string_view>

namespace engram::data {

/// Whether all lengths in a model of SentencePiece (a message of Protocol Buffers) lie within what holds them. What is
/// malformed otherwise is left for the library to refuse.
bool lengths_fit(std::string_view model);

}  // namespace engram::data
