#include "apps/training/metrics_reader.hpp"

#include <cstdint>
#include <string>

#include "apps/data/read_file.hpp"
#include "core/error.hpp"

namespace engram {

std::vector<nlohmann::json> read_metrics(const std::filesystem::path& metrics_file, std::string_view event,
                                         std::string_view reader) {
  const std::string bytes = data::read_bytes(metrics_file);
  std::vector<nlohmann::json> found;
  std::size_t number = 1;
  for (std::string_view rest = bytes; rest.find('\n') != rest.npos; ++number) {
    const std::size_t length = rest.find('\n');
    try {
      nlohmann::json line = nlohmann::json::parse(rest.substr(0, length));
      const std::string name = line.at("event");
      const std::int64_t step = line.at("step");
      if (name == "resume")
        while (!found.empty() && found.back()["step"] > step) found.pop_back();
      if (name == event) found.push_back(std::move(line));
    } catch (const nlohmann::json::exception& error) {
      throw FileError(
          text(reader, ": line ", number, " of '", metrics_file.string(), "' is no report: ", error.what()));
    }
    rest.remove_prefix(length + 1);
  }
  return found;
}

}  // namespace engram
