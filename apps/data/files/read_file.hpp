#pragma once
/// Reading whole files, and the small JSON files of a data folder.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "apps/data/files/prepare_watch.hpp"

namespace engram::data {

/// Throws FileError "read_file: '<path>' must be a readable file", with the system's reason for `error`, an errno.
[[noreturn]] void refuse_unreadable(const std::filesystem::path& path, int error);

/// Whether what is read may be a pipe, which one must wait for, beside a regular file.
enum class Pipes : unsigned char { refused, read };
/// A descriptor for reading, the caller's. Throws FileError with the system's reason for what cannot be opened, and for
/// a device or a socket: /dev/zero never ends. A folder passes, and is refused by its first read.
int open_to_read(const std::filesystem::path& path, Pipes pipes = Pipes::read);

/// The most bytes that read_bytes() takes from a pipe, which may never end.
inline constexpr std::size_t kLargestPipe = std::size_t{1} << 33;
/// The bytes of a file. Throws FileError as open_to_read() does, for a folder, for what cannot be read, and for a pipe
/// with more than `largest_pipe` bytes. `watch` hears how many have been read.
std::string read_bytes(const std::filesystem::path& path, Pipes pipes = Pipes::read,
                       std::size_t largest_pipe = kLargestPipe, const ByteWatch& watch = {});

/// The JSON object in a file whose members "format" and "version" are the given ones. Throws FileError for anything
/// else: no JSON, another program's file, a newer version.
nlohmann::json read_json(const std::filesystem::path& path, std::string_view format, int version);
/// The two parts of that, for bytes that were read already; for messages, `path` is where they are from, and `advice`
/// what to do if they are no object.
nlohmann::json parse_object(
    std::string_view bytes, const std::filesystem::path& path,
    std::string_view advice = "the file is damaged or of another program; prepare the data again");
void require_format(const nlohmann::json& object, const std::filesystem::path& path, std::string_view format,
                    int version);

}  // namespace engram::data
