#include "apps/studies/page/page_sources.hpp"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "apps/data/files/open_stream.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "core/error.hpp"
#include "core/files/list_folder.hpp"
#include "nn/checkpoint.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCheckpointFile = "model.safetensors";

/// A folder by the name that a sweep's table has of it: without a slash behind it, "." by its own name.
fs::path named(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();
  if (path.filename() != "." && path.filename() != "..") return path.empty() ? given : path;
  std::error_code error;
  const fs::path whole = fs::canonical(given, error);
  return error ? given : whole;
}

bool is_run(const fs::path& folder) {
  std::error_code ignored;
  return holds_run(folder) || fs::exists(folder / "config.toml", ignored) ||
         fs::exists(folder / kCheckpointFile, ignored);
}

PageSource run_in(const fs::path& folder) {
  std::error_code ignored;
  // The folder of a checkpoint in a run's folder, or of one without a run.
  if (!holds_run(folder) && fs::exists(folder / kCheckpointFile, ignored))
    return {.name = folder.string(), .folder = {}, .checkpoint = folder / kCheckpointFile};
  return {.name = folder.string(), .folder = folder, .checkpoint = {}};
}

/// The runs in the folders of a sweep, by name.
std::vector<PageSource> runs_in(const fs::path& sweep) {
  std::set<fs::path> folders;
  std::error_code ignored;
  for (const fs::directory_entry& entry : list_folder(sweep, ignored))
    if (entry.is_directory(ignored) && is_run(entry.path())) folders.insert(entry.path());
  std::vector<PageSource> runs;
  for (const fs::path& folder : folders) runs.push_back(run_in(folder));
  return runs;
}

/// Whether a file begins as those of safetensors do: eight bytes, and the brace of a JSON object.
bool looks_like_checkpoint(const fs::path& file) {
  char beginning[9]{};
  data::open_stream(file).read(beginning, sizeof beginning);
  return beginning[8] == '{';
}

/// The last so many parts of a path.
std::string last_parts(const fs::path& path, std::size_t count) {
  const fs::path plain = path.lexically_normal();
  std::vector<std::string> parts;
  for (const fs::path& part : plain)
    if (!part.empty() && part != ".") parts.push_back(part.string());
  std::string joined;
  for (std::size_t i = parts.size() - std::min(count, parts.size()); i < parts.size(); ++i)
    joined += (joined.empty() || joined == "/" ? "" : "/") + parts[i];
  return joined.empty() ? path.string() : joined;
}

/// The shortest ends of paths that differ.
void name_shortly(std::vector<PageSource>& runs) {
  constexpr std::size_t kMostParts = 12;
  const auto name_of = [](const PageSource& run, std::size_t parts) {
    if (!run.folder.empty()) return last_parts(fs::absolute(run.folder), parts);
    const fs::path file = fs::absolute(run.checkpoint), folder = file.parent_path();
    if (file.filename() != kCheckpointFile) return last_parts(file, parts);
    // "best" alone would not say of which run.
    return last_parts(folder, parts + (holds_run(folder.parent_path()) ? 1 : 0));
  };
  for (std::size_t parts = 1; parts <= kMostParts; ++parts) {
    std::set<std::string> names;
    for (PageSource& run : runs) names.insert(run.name = name_of(run, parts));
    if (names.size() == runs.size()) return;
  }
}

}  // namespace

PageSources find_sources(const std::vector<std::string>& arguments) {
  PageSources found;
  std::set<fs::path> seen;
  const auto add = [&](PageSource run) {
    std::error_code ignored;
    const fs::path place = fs::weakly_canonical(run.folder.empty() ? run.checkpoint : run.folder, ignored);
    if (seen.insert(place).second) found.runs.push_back(std::move(run));
  };
  for (const std::string& argument : arguments) {
    const fs::path path = named(argument);
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (status.type() == fs::file_type::regular && looks_like_checkpoint(path)) {
      add({.name = argument, .folder = {}, .checkpoint = path});
    } else if (!fs::is_directory(status)) {
      found.problems.push_back(
          text("'", argument, "' must be a run, a sweep or a checkpoint, ",
               fs::exists(status) ? "got something else" : "but there is no file or folder of this name"));
    } else if (is_run(path)) {
      add(run_in(path));
    } else if (std::vector<PageSource> runs = runs_in(path); !runs.empty()) {
      for (PageSource& run : runs) add(std::move(run));
    } else {
      found.problems.push_back(text("'", argument,
                                    "' must be a run, a sweep or a checkpoint, got a folder without metrics.jsonl, "
                                    "config.toml and model.safetensors, also in its folders"));
    }
  }
  name_shortly(found.runs);
  return found;
}

}  // namespace engram
