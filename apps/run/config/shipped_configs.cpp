#include "apps/run/config/shipped_configs.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <system_error>

#include "apps/terminal/edit_distance.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".toml";

fs::path configs_folder() { return share_folder() / "configs"; }

std::string last_part(std::string_view name) { return std::string(name.substr(name.rfind('/') + 1)); }

/// What was given as the names of configurations are written.
std::string as_name(const fs::path& given) {
  std::string name = given.lexically_normal().generic_string();
  constexpr std::string_view kAsPagesHaveIt = "apps/configs/";
  if (name.starts_with(kAsPagesHaveIt)) name.erase(0, kAsPagesHaveIt.size());
  if (name.ends_with(kEnding)) name.erase(name.size() - kEnding.size());
  return name;
}

/// The one that is nearest to a name, or to the last part of one; empty: none is near.
std::string nearest(const std::string& name, const std::vector<ShippedConfig>& all) {
  std::string best;
  std::size_t least = 0;
  for (const ShippedConfig& one : all)
    for (const std::string& known : {one.name, last_part(one.name)})
      if (const std::size_t distance = edit_distance(name, known);
          is_near(name, known) && (best.empty() || distance < least)) {
        best = one.name;
        least = distance;
      }
  return best;
}

[[noreturn]] void refuse(const fs::path& named, const std::string& name, const std::vector<ShippedConfig>& all) {
  const fs::path folder = configs_folder();
  std::string hint = text("; those lie in '", folder.string(), "'");
  if (all.empty())
    hint = text(" (there are none in '", folder.string(), "')");
  else if (const std::string near = nearest(name, all); !near.empty())
    hint = "; the nearest is " + near;
  throw FileError(text("config: '", named.string(), "' must be a file or one of engram configs, got neither", hint));
}

}  // namespace

fs::path share_folder() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  return (program.parent_path() / ".." / "share" / "engram").lexically_normal();
}

std::vector<ShippedConfig> shipped_configs() {
  const fs::path folder = configs_folder();
  std::vector<ShippedConfig> all;
  std::error_code error;
  // A link is followed once, the build folder's own.
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() != kEnding) continue;
    const std::string relative = at->path().lexically_relative(folder).generic_string();
    all.push_back({relative.substr(0, relative.size() - kEnding.size()), at->path()});
  }
  std::ranges::sort(all, {}, &ShippedConfig::name);
  return all;
}

std::string opening_comment(const std::string& toml) {
  std::string comment;
  for (std::size_t begin = 0; begin < toml.size() && toml[begin] == '#';) {
    const std::size_t end = std::min(toml.find('\n', begin), toml.size());
    const std::size_t first = std::min(toml.find_first_not_of("# ", begin), end);
    if (first < end) comment += (comment.empty() ? "" : " ") + toml.substr(first, end - first);
    begin = end + 1;
  }
  return comment;
}

fs::path find_config(const fs::path& named) {
  std::error_code error;
  // What is there and is no file is refused by who reads it, a pipe is read.
  if (named.empty() || named.is_absolute() || fs::exists(named, error) || error) return named;
  return shipped_config(named);
}

fs::path shipped_config(const fs::path& named) {
  const std::string name = as_name(named);
  const std::vector<ShippedConfig> all = shipped_configs();
  const auto whole = std::ranges::find(all, name, &ShippedConfig::name);
  if (whole != all.end()) return whole->file;
  const ShippedConfig* found = nullptr;
  for (const ShippedConfig& one : all) {
    if (last_part(one.name) != name) continue;
    if (found != nullptr)
      throw UsageError(text("config: '", named.string(), "' must be one configuration, got the end of ", found->name,
                            " and of ", one.name));
    found = &one;
  }
  if (found == nullptr) refuse(named, name, all);
  return found->file;
}

}  // namespace engram
