#pragma once
/// Byte-pair codes of the programs fastBPE and subword-nmt: pairs to join, in the order in which they were learned.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/names.hpp"

namespace engram::data {

/// What ends a word in the pairs, and what follows a subword that does not end its word.
inline constexpr std::string_view kWordEnd = "</w>", kWordGoesOn = "@@";

/// How a file says it, and what differs then.
///
///   fastbpe  lines "left right count"; a word's last letter is one with kWordEnd from the beginning
///   v0_1     subword-nmt's lines "left right" without a version; kWordEnd is a letter of its own
///   v0_2     the same after a line "#version: 0.2"; kWordEnd as in fastBPE
enum class MergeStyle : std::uint8_t { fastbpe, v0_1, v0_2 };
constexpr auto names_of(MergeStyle) {
  return std::to_array<Named<MergeStyle>>(
      {{MergeStyle::fastbpe, "fastbpe"}, {MergeStyle::v0_1, "subword-nmt-0.1"}, {MergeStyle::v0_2, "subword-nmt-0.2"}});
}

struct MergeList {
  /// The most bytes that a pair may have when it is joined.
  static constexpr std::size_t kLongest = 1024;

  MergeStyle style = MergeStyle::fastbpe;
  std::vector<std::pair<std::string, std::string>> merges;
};

/// A subword as it is written, kWordGoesOn and all, and how often a text has it.
struct CountedSubword {
  std::string written;
  std::int64_t count = 0;
};

/// Reads codes. Throws FileError naming file and line for a line unlike the first, a pair that repeats, is too long or
/// makes kWordEnd, bytes that are no UTF-8 and another version, and for a vocabulary and a file without pairs.
MergeList read_merges(const std::filesystem::path& path);
/// The same for the bytes of a file; `first_line` is the number of the first one.
MergeList parse_merges(std::string_view bytes, const std::filesystem::path& path, std::int64_t first_line = 1);

/// Reads a vocabulary: lines "subword count". Leaves out those with a count below `least`. Throws FileError naming file
/// and line for a line of another form, a subword that repeats, bytes that are no UTF-8, and where none is left.
std::vector<CountedSubword> read_subword_list(const std::filesystem::path& path, std::int64_t least);
std::vector<CountedSubword> parse_subword_list(std::string_view bytes, const std::filesystem::path& path,
                                               std::int64_t least, std::int64_t first_line = 1);

}  // namespace engram::data
