#pragma once
/// Folders that commands fill get no files of another kind mixed into what they hold.

#include <filesystem>
#include <initializer_list>
#include <string_view>

namespace engram {

/// Throws UsageError, naming the command and what is in the way, unless the folder does not exist, is empty, or holds
/// nothing but hidden files and files and folders with these names, also with ".partial" behind: what an interrupted
/// start leaves.
void require_own_folder(std::string_view command, const std::filesystem::path& folder,
                        std::initializer_list<std::string_view> own);

/// require_own_folder() of a folder that a run is to begin in.
void require_run_folder(std::string_view command, const std::filesystem::path& folder);

/// Makes the folder, and those that it is in. An empty name is where one is already. Throws FileError, beginning with
/// the command.
void make_folder(std::string_view command, const std::filesystem::path& folder);

/// Whether a run has begun in the folder.
bool holds_run(const std::filesystem::path& folder);

}  // namespace engram
