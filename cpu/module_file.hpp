#pragma once
/// Where modules of the program lie: shared objects that are loaded while it runs.

#include <filesystem>
#include <string>

namespace engram::cpu {

/// Beside the program or in ../lib/engram from there when it is installed, in `build_folder` otherwise.
std::filesystem::path module_file(const std::string& name, const std::filesystem::path& build_folder);

}  // namespace engram::cpu
