#include "cpu/module_file.hpp"

#include <system_error>

namespace engram::cpu {

std::filesystem::path module_file(const std::string& name, const std::filesystem::path& build_folder) {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (!error)
    for (const std::filesystem::path& folder : {program, program / ".." / "lib" / "engram"})
      if (std::filesystem::exists(folder / name, error)) return folder / name;
  return build_folder / name;
}

}  // namespace engram::cpu
