#pragma once
/// Reading whole files, and the small JSON files of a data folder.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace engram::data {

/// Throws FileError "read_file: '<path>' must be a readable file", with the system's reason for `error`, an errno.
[[noreturn]] void refuse_unreadable(const std::filesystem::path& path, int error);

/// The bytes of a file. Throws FileError with the system's reason if it is missing, is a folder or cannot be read.
std::string read_bytes(const std::filesystem::path& path);

/// The JSON object in a file whose members "format" and "version" are the given ones. Throws FileError for anything
/// else: no JSON, another program's file, a newer version.
nlohmann::json read_json(const std::filesystem::path& path, std::string_view format, int version);
/// The two parts of that, for bytes that were read already; `path` is where they are from, for messages.
nlohmann::json parse_object(std::string_view bytes, const std::filesystem::path& path);
void require_format(const nlohmann::json& object, const std::filesystem::path& path, std::string_view format,
                    int version);

}  // namespace engram::data
