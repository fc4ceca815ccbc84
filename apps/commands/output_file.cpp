#include "apps/commands/output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "apps/data/files/open_stream.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/safetensors.hpp"

namespace engram {
namespace {

[[noreturn]] void refuse_to_replace(std::string_view option, const std::string& path, std::string_view what) {
  throw UsageError(text(option, " must name a new file or one of the kind that it writes, got '", path, "', ", what,
                        "\n  name another file; nothing is written over"));
}

/// Whether there is a file with something in it.
bool has_bytes(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored) && std::filesystem::file_size(path, ignored) > 0;
}

/// Makes the file that the results will be written to, as they will be, and takes it away again.
void check_writable(std::string_view option, const std::string& path) {
  if (path == "-")
    throw UsageError(text(option, " must name a file, got '-'\n  to a pipe goes what is printed, with --json as JSON"));
  const DurableFile tried(path);
}

}  // namespace

void check_output_file(std::string_view option, const std::string& path,
                       std::initializer_list<std::string_view> beginnings) {
  if (path.empty()) return;
  // By their names programs would take these for what they are not.
  const std::string ending = std::filesystem::path(path).extension().string();
  const bool is_drawing = std::ranges::find(beginnings, kSvgBeginning) != beginnings.end();
  if (const auto others = {".png", ".pdf", ".jpg", ".jpeg", ".gif", ".eps", ".ps", ".webp"};
      is_drawing && std::ranges::find(others, ending) != others.end())
    throw UsageError(text(option, " must name a file that ends in .svg, as SVG is what is drawn, got '", path,
                          "'\n  rsvg-convert and browsers make others of it"));
  if (has_bytes(path)) {
    std::size_t longest = 0;
    for (const std::string_view one : beginnings) longest = std::max(longest, one.size());
    std::string start(longest, '\0');
    std::ifstream file = data::open_stream(path);
    if (!file.is_open()) data::refuse_unreadable(path, errno);
    file.read(start.data(), static_cast<std::streamsize>(longest));
    if (file.bad()) data::refuse_unreadable(path, errno);
    start.resize(static_cast<std::size_t>(file.gcount()));
    if (std::ranges::none_of(beginnings, [&start](std::string_view one) { return start.starts_with(one); }))
      refuse_to_replace(option, path, "which begins otherwise");
  }
  check_writable(option, path);
}

void check_output_weights(std::string_view option, const std::string& path, bool own) {
  if (path.empty()) return;
  if (has_bytes(path)) {
    Metadata metadata;
    try {
      metadata = SafetensorsFile(path, HalfFloats::listed).metadata();
    } catch (const FileError&) {
      refuse_to_replace(option, path, "which is no safetensors file");
    }
    // What was imported has neither the state of a run nor data that it was trained on.
    if (metadata.contains(metadata_keys::kRun) || metadata.contains(metadata_keys::kData))
      refuse_to_replace(option, path, "a checkpoint of a run");
    if (!own && metadata.contains(metadata_keys::kFormat)) refuse_to_replace(option, path, "a checkpoint of Engram");
  }
  // A folder that is missing is made.
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (folder.empty() || std::filesystem::exists(folder, ignored)) check_writable(option, path);
}

}  // namespace engram
