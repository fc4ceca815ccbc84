#include "apps/studies/figures/run_settings.hpp"

#include <charconv>
#include <cmath>
#include <system_error>

#include "apps/data/files/read_file.hpp"
#include "apps/run/config/config_entries.hpp"

namespace engram {
namespace {

std::string without_quotes(const std::string& value) {
  return value.size() >= 2 && value.front() == '"' && value.back() == '"' ? value.substr(1, value.size() - 2) : value;
}

}  // namespace

std::vector<KeyValue> read_settings(const std::filesystem::path& run) {
  const std::filesystem::path config = run / "config.toml";
  std::error_code ignored;
  std::vector<KeyValue> settings;
  if (!std::filesystem::exists(config, ignored)) return settings;
  for (const auto& [key, value] : config_entries(data::read_bytes(config, data::Pipes::refused)))
    settings.emplace_back(key, without_quotes(value));
  return settings;
}

std::optional<double> number_in(const std::string& written) {
  double number = 0;
  const char* const end = written.data() + written.size();
  const auto [parsed, error] = std::from_chars(written.data(), end, number);
  if (error != std::errc() || parsed != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool same_value(const std::string& left, const std::string& right) {
  const std::optional<double> one = number_in(left), other = number_in(right);
  return left == right || (one && other && *one == *other);
}

}  // namespace engram
