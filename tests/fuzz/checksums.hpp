#pragma once
/// Files with checksums that are right: what a checksum would refuse is tried as it is, and once more with this one, so
/// that what lies behind it is read as well. Bytes that are no such file come back as they were.

#include <string>
#include <string_view>

namespace engram::fuzz {

/// The entry "engram.checksum", if the header has one.
std::string with_safetensors_checksum(std::string_view file);
/// CRC-32 of every member in the directory whose bytes are there, in both places that say it.
std::string with_zip_checksums(std::string_view file);
/// Of the header.
std::string with_table_checksum(std::string_view file);
/// Of a token file or a file of articles' starts, whose headers have both hashes at the same places; the header's
/// first.
std::string with_data_hashes(std::string_view file);

}  // namespace engram::fuzz
