#pragma once
/// The file beside a token file that says where the articles of its split begin: a header of 56 bytes, then the starts,
/// everything little-endian.
///
///   offset  bytes  what
///        0      8  "ENGRAMAR"
///        8      4  version, 1
///       12      4  bytes per start, 8
///       16      8  tokens of the split
///       24      8  number of articles
///       32      8  hash of the tokens, that of the token file
///       40      8  FNV-1a of the bytes of the starts
///       48      8  FNV-1a of the 48 bytes before
///
/// The first start is 0, each is larger than the one before, and the last is below the number of tokens: an article has
/// at least one token and ends where the next begins, or with the split.

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace engram::data {

/// The contents of the file of a split of `tokens` tokens. Throws UsageError for starts that are not as said above.
std::string article_starts_bytes(std::span<const std::int64_t> starts, std::int64_t tokens, std::uint64_t tokens_hash);

/// Reads and checks such a file, which must be of a split of so many tokens with this hash. Throws FileError saying
/// which promise is broken.
std::vector<std::int64_t> read_article_starts(const std::filesystem::path& path, std::int64_t tokens,
                                              std::uint64_t tokens_hash);

/// Hash of starts, the same for equal ones alone.
std::uint64_t hash_of_starts(std::span<const std::int64_t> starts);

/// Throws UsageError, beginning with `where`, for starts that are not as said above.
void require_article_starts(std::string_view where, std::span<const std::int64_t> starts, std::int64_t tokens);

}  // namespace engram::data
