#pragma once
/// Where modules of the program, or of the library libengram.so, lie: shared objects that are loaded while it runs.

#include <filesystem>
#include <string>

namespace engram::cpu {

/// The library that this code is in, by its absolute path; empty where it is a part of the program itself.
std::filesystem::path own_library();

/// In the folder engram beside own_library(), beside the program, or in ../lib/engram from there when it is installed;
/// in `build_folder` otherwise.
std::filesystem::path module_file(const std::string& name, const std::filesystem::path& build_folder);

}  // namespace engram::cpu
