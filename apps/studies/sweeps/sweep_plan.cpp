#include "apps/studies/sweeps/sweep_plan.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/error.hpp"

namespace engram {
namespace {

struct Axis {
  std::string key;  // section.key
  std::vector<std::string> values;
};

bool fits_folder(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') || byte == '.' ||
         byte == '_' || byte == '-' || byte == '+';
}

/// "section.key" and "value".
std::pair<std::string, std::string> split_assignment(std::string_view written, std::string_view option) {
  const std::size_t equals = written.find('='), dot = written.find('.');
  if (equals == written.npos || dot == written.npos || dot > equals || dot == 0 || dot + 1 == equals ||
      equals + 1 == written.size())
    throw UsageError(text("sweep: ", option, " must have section.key=value, got '", written, "'"));
  return {split_list(written.substr(0, equals), '\n').front(), std::string(written.substr(equals + 1))};
}

Axis parse_axis(const std::string& written) {
  auto [key, list] = split_assignment(written, "--vary");
  const char separator = list.find(';') == list.npos ? ',' : ';';
  // What ends with a semicolon is one value with commas.
  if (list.back() == ';') list.pop_back();
  Axis axis{std::move(key), split_list(list, separator)};
  if (std::ranges::find(axis.values, "") != axis.values.end())
    throw UsageError(text("sweep: --vary must have a value between any two commas, got '", written, "'"));
  return axis;
}

/// "slots-16" for model.slots=16.
std::string name_part(const std::string& key, const std::string& value) {
  std::string name = key.substr(key.find('.') + 1) + "-" + value;
  for (char& byte : name)
    if (!fits_folder(byte)) byte = '-';
  return name;
}

/// More are no sweep, but a list that was not meant: values multiply.
constexpr std::size_t kMostVariants = 10'000;

/// Of the settings of all variants together: every one of them is kept, and named by what it sets.
constexpr std::size_t kMostLetters = std::size_t{256} << 10;

/// Letters of the longest setting of an axis.
std::size_t most_letters(const Axis& axis) {
  std::size_t most = 0;
  for (const std::string& value : axis.values) most = std::max(most, axis.key.size() + value.size());
  return most;
}

std::vector<SweepVariant> grid_of(const std::vector<std::string>& vary) {
  std::vector<SweepVariant> grid;
  std::set<std::string> keys;
  std::size_t letters = 0;  // of one variant
  for (const std::string& written : vary) {
    const Axis axis = parse_axis(written);
    if (!keys.insert(axis.key).second)
      throw UsageError(text("sweep: each key must be varied once, got ", axis.key, " twice",
                            "\n  one --vary may have any number of values"));
    if (grid.empty()) grid.emplace_back();
    if (grid.size() * axis.values.size() > kMostVariants)
      throw UsageError(text("sweep: the values that --vary lists must make at most ", kMostVariants,
                            " variants together, got ", grid.size() * axis.values.size(), " by ", axis.key,
                            "\n  vary fewer keys at once, or fewer values"));
    letters += most_letters(axis);
    if (grid.size() * axis.values.size() * letters > kMostLetters)
      throw UsageError(text("sweep: the settings of all variants of --vary must have at most ", kMostLetters,
                            " letters together, got ", grid.size() * axis.values.size(), " variants of up to ", letters,
                            " letters by ", axis.key, "\n  vary fewer keys at once, or fewer values"));
    std::vector<SweepVariant> longer;
    for (const SweepVariant& before : grid) {
      for (const std::string& value : axis.values) {
        SweepVariant variant = before;
        variant.name += (variant.name.empty() ? "" : "_") + name_part(axis.key, value);
        variant.overrides.push_back(axis.key + "=" + value);
        longer.push_back(std::move(variant));
      }
    }
    grid = std::move(longer);
  }
  return grid;
}

SweepVariant parse_variant(const std::string& written) {
  const std::size_t colon = written.find(':');
  SweepVariant variant{written.substr(0, colon), {}};
  if (colon == written.npos || colon + 1 == written.size()) return variant;
  for (const std::string& part : split_list(std::string_view(written).substr(colon + 1), ',')) {
    const bool begins = part.find('=') != part.npos;
    if (!begins && variant.overrides.empty())
      throw UsageError(text("sweep: --variant must be NAME:section.key=value,..., got '", written, "'"));
    if (!begins) {
      variant.overrides.back() += "," + part;
      continue;
    }
    const auto [key, value] = split_assignment(part, "--variant");
    if (std::ranges::any_of(variant.overrides,
                            [begin = key + "="](const std::string& other) { return other.starts_with(begin); }))
      throw UsageError(text("sweep: --variant must have each key once, got ", key, " twice in '", written, "'"));
    variant.overrides.push_back(key + "=" + value);
  }
  return variant;
}

void check_names(const std::vector<SweepVariant>& variants) {
  std::set<std::string> names;
  for (const SweepVariant& variant : variants) {
    if (variant.name.empty() || variant.name.front() == '.' || !std::ranges::all_of(variant.name, fits_folder))
      throw UsageError(
          text("sweep: a variant's name must be of letters, digits, '.', '_', '-' and '+', got '", variant.name, "'"));
    for (const std::string_view own : {"sweep.csv", "runs.csv"})
      if (variant.name.starts_with(own))
        throw UsageError(text("sweep: a variant's name must not begin with ", own, ", which the sweep writes, got '",
                              variant.name, "'"));
    if (!names.insert(variant.name).second)
      throw UsageError(text("sweep: each variant must have a name of its own, got '", variant.name, "' twice",
                            "\n  --name gives names to the variants of --vary"));
  }
}

}  // namespace

std::vector<std::string> split_list(std::string_view list, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t length = std::min(list.find(separator), list.size());
    std::string_view part = list.substr(0, length);
    while (!part.empty() && (part.front() == ' ' || part.front() == '\t')) part.remove_prefix(1);
    while (!part.empty() && (part.back() == ' ' || part.back() == '\t')) part.remove_suffix(1);
    parts.emplace_back(part);
    if (length == list.size()) return parts;
    list.remove_prefix(length + 1);
  }
}

std::vector<SweepVariant> plan_variants(const std::vector<std::string>& vary, const std::vector<std::string>& variants,
                                        const std::vector<std::string>& names) {
  std::vector<SweepVariant> all = grid_of(vary);
  if (!names.empty() && names.size() != all.size())
    throw UsageError(
        text("sweep: --name must name each of the ", all.size(), " variants of --vary, got ", names.size()));
  for (std::size_t i = 0; i < names.size(); ++i) all[i].name = names[i];
  for (const std::string& written : variants) all.push_back(parse_variant(written));
  if (all.empty()) all.push_back({"base", {}});
  check_names(all);
  return all;
}

std::vector<std::uint64_t> parse_seeds(std::string_view written) {
  std::vector<std::uint64_t> seeds;
  if (written.empty()) return seeds;
  for (const std::string& part : split_list(written, ',')) {
    std::uint64_t seed = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), seed);
    if (error != std::errc() || rest != part.data() + part.size() || std::ranges::find(seeds, seed) != seeds.end())
      throw UsageError(text("sweep: --seeds must be whole numbers from 0 on, each once, got '", written, "'"));
    seeds.push_back(seed);
  }
  return seeds;
}

}  // namespace engram
