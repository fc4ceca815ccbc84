#include "apps/run/folder/run_folder.hpp"

#include <algorithm>
#include <string>
#include <system_error>

#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/list_folder.hpp"

namespace engram {

void require_own_folder(std::string_view command, const std::filesystem::path& folder,
                        std::initializer_list<std::string_view> own) {
  std::string foreign;
  std::error_code ignored;  // what cannot be read cannot be written either, and is refused there
  for (const auto& entry : list_folder(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool is_own = std::ranges::any_of(
        own, [&name](std::string_view one) { return name == one || name == text(one, ".partial"); });
    // The first by name, whatever the order in the folder.
    // Such as .gitkeep, which keeps an empty folder.
    const bool hidden = name.starts_with('.');
    if (!is_own && !hidden && (foreign.empty() || name < foreign)) foreign = name;
  }
  if (!foreign.empty())
    throw UsageError(text(command, ": --out must be a new or an empty folder, got '", folder.string(), "' with '",
                          foreign, "' in it\n  name another folder"));
}

void require_run_folder(std::string_view command, const std::filesystem::path& folder) {
  require_own_folder(command, folder, {"checkpoint", "best", "config.toml", "metrics.jsonl", "lock"});
}

void make_folder(std::string_view command, const std::filesystem::path& folder) {
  if (folder.empty()) return;
  if (const std::error_code error = make_durable_folder(folder))
    throw FileError(text(command, ": cannot make the folder '", folder.string(), "': ", error.message()));
}

bool holds_run(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "checkpoint", ignored) ||
         std::filesystem::exists(folder / "metrics.jsonl", ignored);
}

}  // namespace engram
