#pragma once
/// What lies in a folder.

#include <filesystem>
#include <system_error>

namespace engram {

/// An iterator of the C++ library over a folder, directory_iterator or recursive_directory_iterator. Opening one is
/// made again where a signal broke it off. With an error it is at its end.
template <class Iterator = std::filesystem::directory_iterator>
Iterator list_folder(const std::filesystem::path& folder, std::error_code& error) {
  for (;;) {
    Iterator entries(folder, error);
    if (error != std::errc::interrupted) return entries;
  }
}

/// The same; throws std::filesystem::filesystem_error.
inline std::filesystem::directory_iterator list_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries = list_folder(folder, error);
  if (error) throw std::filesystem::filesystem_error("list_folder", folder, error);
  return entries;
}

}  // namespace engram
