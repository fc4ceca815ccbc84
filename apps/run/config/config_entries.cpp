#include "apps/run/config/config_entries.hpp"

#include <algorithm>
#include <cstddef>

namespace engram {

std::vector<std::pair<std::string, std::string>> config_entries(const std::string& toml) {
  std::vector<std::pair<std::string, std::string>> entries;
  std::string section;
  for (std::size_t begin = 0; begin < toml.size();) {
    const std::size_t end = std::min(toml.find('\n', begin), toml.size());
    const std::string line = toml.substr(begin, end - begin);
    begin = end + 1;
    const std::size_t equals = line.find(" = ");
    if (line.starts_with('[') && line.ends_with(']')) section = line.substr(1, line.size() - 2) + ".";
    if (!line.starts_with('#') && equals != std::string::npos)
      entries.emplace_back(section + line.substr(0, equals), line.substr(equals + 3));
  }
  return entries;
}

}  // namespace engram
