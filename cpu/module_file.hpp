#pragma once
/// Where modules of the program, or of the library libengram.so, lie: shared objects that are loaded while it runs.

#include <filesystem>
#include <string>

namespace engram::cpu {

/// The library that this code is in, by its absolute path; empty where it is a part of the program itself.
std::filesystem::path own_library();

/// What dlopen() is to open: the file of this name in the folder engram beside own_library(), beside the program, or
/// where an installed one has its modules, seen from there. Otherwise the name alone, which is looked for where the
/// program or library was linked to find it: those of a build folder know that folder, installed ones do not.
std::filesystem::path module_file(const std::string& name);

}  // namespace engram::cpu
