#pragma once
/// The project's own sources and pages as text, for tests of how they are laid out.

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace engram::source_tree {

using Lines = std::vector<std::string>;

struct SourceFile {
  std::string path;  ///< from the root, with '/' between its parts
  Lines lines;
};

/// The top folders that hold sources, in the order of the alphabet.
const std::vector<std::string>& top_folders();

/// C++ and CUDA, by the extension.
bool is_source(const std::string& path);

/// Writes a file that tests compare with. Throws std::runtime_error unless the words that choose test cases on the
/// command line of the program name what writes: "write the golden losses", [.write-golden].
void put_into_tree(const std::filesystem::path& path, const std::string& bytes);

/// Throws std::runtime_error for a file that cannot be read.
Lines lines_of(const std::filesystem::path& path);

/// All sources of the top folders under `root`, in the order of their paths.
std::vector<SourceFile> all_sources(const std::filesystem::path& root);

/// README.md and all pages of docs/, as paths from the root in the order of the alphabet.
std::vector<std::string> all_pages(const std::filesystem::path& root);

/// From each file to those of the project that it includes, without extensions: a header and its source are one.
using Includes = std::map<std::string, std::set<std::string>>;
void add_includes(Includes& all, const std::string& path, const Lines& lines);
Includes includes_of(const std::vector<SourceFile>& sources);

}  // namespace engram::source_tree
