#include "tests/harness/source_tree.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <stdexcept>

namespace engram::source_tree {
namespace {

namespace fs = std::filesystem;

std::string stem_of(const std::string& path) { return path.substr(0, path.rfind('.')); }

}  // namespace

void put_into_tree(const fs::path& path, const std::string& bytes) {
  if (std::getenv("ENGRAM_TESTS_WRITE") == nullptr)
    throw std::runtime_error("a case that writes '" + path.string() +
                             "' must be named on the command line, got others");
  std::ofstream file(path, std::ios::binary);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
    throw std::runtime_error("'" + path.string() + "' must be a file that can be written");
}

const std::vector<std::string>& top_folders() {
  static const std::vector<std::string> folders{"apps", "autograd", "core", "cpu", "cuda", "nn", "tests"};
  return folders;
}

bool is_source(const std::string& path) {
  static const std::set<std::string> extensions{".cpp", ".hpp", ".cu", ".cuh"};
  return extensions.contains(fs::path(path).extension().string());
}

Lines lines_of(const fs::path& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<SourceFile> all_sources(const fs::path& root) {
  std::vector<SourceFile> sources;
  for (const std::string& folder : top_folders()) {
    if (!fs::exists(root / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (entry.is_regular_file() && is_source(path)) sources.push_back({path, lines_of(entry.path())});
    }
  }
  std::ranges::sort(sources, {}, &SourceFile::path);
  return sources;
}

void add_includes(Includes& all, const std::string& path, const Lines& lines) {
  static const std::regex include("^\\s*#\\s*include\\s*\"([^\"]+)\"");
  std::smatch match;
  for (const std::string& line : lines)
    if (line.find("include") != std::string::npos && std::regex_search(line, match, include) &&
        stem_of(match[1]) != stem_of(path))
      all[stem_of(path)].insert(stem_of(match[1]));
}

Includes includes_of(const std::vector<SourceFile>& sources) {
  Includes all;
  for (const SourceFile& source : sources) add_includes(all, source.path, source.lines);
  return all;
}

std::vector<std::string> all_pages(const std::filesystem::path& root) {
  std::vector<std::string> pages{"README.md"};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / "docs"))
    if (entry.path().extension() == ".md")
      pages.push_back(std::filesystem::relative(entry.path(), root).generic_string());
  std::ranges::sort(pages);
  return pages;
}

}  // namespace engram::source_tree
