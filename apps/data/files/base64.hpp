#pragma once
/// Base64 (RFC 4648, section 4): bytes as text, for the metadata of checkpoints.

#include <optional>
#include <string>
#include <string_view>

namespace engram::data {

/// Four characters for every three bytes, padded with "=".
std::string base64_text(std::string_view bytes);
/// The bytes that base64_text() wrote as this; nothing for text that it cannot have written.
std::optional<std::string> parse_base64(std::string_view text);

}  // namespace engram::data
