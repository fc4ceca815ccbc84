#pragma once
/// Folders of files that are about to be written.

#include <filesystem>

namespace engram {

/// Makes the folder that the file is to lie in, and those above it, where they are missing. Throws FileError.
void create_parent_folder(const std::filesystem::path& file);

}  // namespace engram
