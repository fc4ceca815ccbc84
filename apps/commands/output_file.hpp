#pragma once
/// The one rule of files that commands write their results to: a path may hold nothing yet, or what the same option
/// wrote before, and the file must be writable. It is checked before the work, so that none is done in vain.

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>

namespace engram {

/// What files of CSV tables, drawings and arrays of numbers begin with; a table's are the first names of its columns.
inline constexpr std::string_view kSvgBeginning = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ";
inline constexpr std::string_view kNpyBeginning = "\x93NUMPY";

/// Throws UsageError, naming the option ("spans: --csv"), for a file that is there and begins with none of
/// `beginnings` (an empty one passes), FileError for a path that cannot be written: a missing folder, no permission, a
/// device. An empty path is an option that was not given.
void check_output_file(std::string_view option, const std::string& path,
                       std::initializer_list<std::string_view> beginnings);

/// check_output_file() for weights: safetensors files may be replaced, but no checkpoint of a run, and those of Engram
/// only where `own` weights are written.
void check_output_weights(std::string_view option, const std::string& path, bool own);

}  // namespace engram
