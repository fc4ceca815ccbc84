#pragma once
/// The configurations that come with the program: those of apps/configs, beside the program wherever it lies.

#include <filesystem>
#include <string>
#include <vector>

namespace engram {

struct ShippedConfig {
  std::string name;            ///< with its folder, if it is in one, and without .toml: "kjv/kjv-quick"
  std::filesystem::path file;  ///< to read it from
};

/// ../share/engram from the folder of the running program: so it is installed, and a build folder has the same. Nothing
/// says that it is there.
std::filesystem::path share_folder();

/// All that are there, by name. Empty where the program was moved away from them.
std::vector<ShippedConfig> shipped_configs();

/// The comment that a configuration begins with, its lines joined; empty: none.
std::string opening_comment(const std::string& toml);

/// The file of one, by its whole name or the last part of it, with or without .toml, also as pages write it,
/// apps/configs/kjv/kjv-quick.toml. Throws FileError where there is none, with where it looked and the nearest name,
/// and UsageError for a last part that several have.
std::filesystem::path shipped_config(const std::filesystem::path& named);

/// What --config names: a file, else what shipped_config() finds, and throws.
std::filesystem::path find_config(const std::filesystem::path& named);

}  // namespace engram
