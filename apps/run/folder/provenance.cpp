#include "apps/run/folder/provenance.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

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

std::optional<std::int64_t> utc_seconds(std::string_view written) {
  constexpr std::string_view kPattern = "0000-00-00T00:00:00Z";
  if (written.size() != kPattern.size()) return std::nullopt;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const bool is_digit = written[i] >= '0' && written[i] <= '9';
    if (kPattern[i] == '0' ? !is_digit : written[i] != kPattern[i]) return std::nullopt;
  }
  const auto number = [&written](std::size_t at, std::size_t digits) {
    int value = 0;
    for (const char digit : written.substr(at, digits)) value = 10 * value + (digit - '0');
    return value;
  };
  const std::chrono::year_month_day day{std::chrono::year(number(0, 4)),
                                        std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                        std::chrono::day(static_cast<unsigned>(number(8, 2)))};
  // 60: a second that was put in.
  if (!day.ok() || number(11, 2) > 23 || number(14, 2) > 59 || number(17, 2) > 60) return std::nullopt;
  const std::chrono::sys_seconds time = std::chrono::sys_days(day) + std::chrono::hours(number(11, 2)) +
                                        std::chrono::minutes(number(14, 2)) + std::chrono::seconds(number(17, 2));
  return time.time_since_epoch().count();
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

std::string working_directory() {
  std::error_code error;
  const std::filesystem::path directory = std::filesystem::current_path(error);
  return error ? std::string() : directory.string();
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
  nlohmann::json facts_of_start{{"command", command_words()},
                                {"version", facts.version},
                                {"commit", facts.commit},
                                {"compiler", facts.compiler},
                                {"build", facts.build},
                                {"host", system.nodename},
                                {"processor", processor.empty() ? std::string(system.machine) : processor},
                                {"processors", ::sysconf(_SC_NPROCESSORS_ONLN)}};
  if (const std::string directory = working_directory(); !directory.empty()) facts_of_start["directory"] = directory;
  return facts_of_start;
}

}  // namespace engram
