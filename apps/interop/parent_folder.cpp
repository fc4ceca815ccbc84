#include "apps/interop/parent_folder.hpp"

#include <system_error>

#include "core/error.hpp"

namespace engram {

void create_parent_folder(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(text("cannot make the folder '", folder.string(), "': ", error.message()));
}

}  // namespace engram
