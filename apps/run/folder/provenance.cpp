#include "apps/run/folder/provenance.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>

#include "apps/run/folder/build_facts.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// All of a file of /proc; empty where there is none.
std::string proc_text(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

std::vector<std::string> command_words() {
  std::vector<std::string> words;
  const std::string all = proc_text("/proc/self/cmdline");
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = std::min(all.find('\0', begin), all.size());
    words.push_back(all.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string processor_name(std::string_view cpuinfo) {
  constexpr std::string_view kName = "\nmodel name";
  const std::size_t at = cpuinfo.find(kName);
  if (at == std::string_view::npos) return "";
  const std::string_view line = cpuinfo.substr(at + 1, cpuinfo.find('\n', at + 1) - at - 1);
  const std::size_t colon = line.find(": ");
  return colon == std::string_view::npos ? "" : std::string(line.substr(colon + 2));
}

nlohmann::json provenance() {
  const BuildFacts facts = build_facts();
  utsname system{};
  ::uname(&system);
  const std::string processor = processor_name(proc_text("/proc/cpuinfo"));
  return {{"command", command_words()},
          {"version", facts.version},
          {"commit", facts.commit},
          {"compiler", facts.compiler},
          {"build", facts.build},
          {"host", system.nodename},
          {"processor", processor.empty() ? std::string(system.machine) : processor},
          {"processors", ::sysconf(_SC_NPROCESSORS_ONLN)}};
}

}  // namespace engram
