#include "cpu/module_file.hpp"

#include <dlfcn.h>

#include <system_error>
#include <vector>

namespace engram::cpu {
namespace {

constexpr const char* kProgram = "/proc/self/exe";

}  // namespace

std::filesystem::path own_library() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&own_library), &info) == 0 || info.dli_fname == nullptr) return {};
  // Of a program that is the name it was called by, which may be anything.
  std::filesystem::path file = info.dli_fname;
  std::error_code error;
  if (!file.is_absolute() || std::filesystem::equivalent(file, kProgram, error) || error) return {};
  return file;
}

std::filesystem::path module_file(const std::string& name) {
  std::vector<std::filesystem::path> folders;
  if (const std::filesystem::path library = own_library(); !library.empty())
    folders.push_back(library.parent_path() / "engram");
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink(kProgram, error).parent_path();
  if (!error) folders.insert(folders.end(), {program, program / ENGRAM_MODULES_FROM_PROGRAM});
  for (const std::filesystem::path& folder : folders)
    if (std::filesystem::exists(folder / name, error)) return folder / name;
  return name;
}

}  // namespace engram::cpu
