/// Abbreviations of English that the rules of moses_words.hpp ask for.

#include <algorithm>
#include <array>

#include "apps/data/files/read_file.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/moses_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

/// Titles, ranks, months, parts of names of firms and places, and what stands before an example.
constexpr auto kPrefixes = std::to_array<std::string_view>(
    {"Adm",  "Asst", "Bldg", "Brig", "Bros", "Capt", "Cmdr",   "Col",  "Comdr", "Con", "Corp", "Cpl", "Det",
     "Dr",   "Drs",  "Ens",  "Gen",  "Gov",  "Hon",  "Hosp",   "Inc",  "Ltd",   "Co",  "Insp", "Lt",  "Maj",
     "Mgr",  "Mme",  "Mr",   "Mrs",  "Ms",   "Mlle", "Messrs", "Msgr", "Mt",    "Nos", "Op",   "Pfc", "Ph",
     "Prof", "Pvt",  "Rep",  "Reps", "Res",  "Rev",  "Rt",     "Sen",  "Sens",  "Sfc", "Sgt",  "Sr",  "Jr",
     "St",   "Supt", "Surg", "Univ", "v",    "vs",   "i.e",    "e.g",  "cf",    "Jan", "Feb",  "Mar", "Apr",
     "Jun",  "Jul",  "Aug",  "Sep",  "Sept", "Oct",  "Nov",    "Dec"});
constexpr auto kPrefixesOfNumbers = std::to_array<std::string_view>({"No", "Nr", "Art", "pp", "p"});
constexpr std::string_view kNumbersOnly = "#NUMERIC_ONLY#";

std::string_view without_space_behind(std::string_view line) {
  while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

MosesPrefixes usual_moses_prefixes() {
  MosesPrefixes prefixes{{kPrefixes.begin(), kPrefixes.end()}, {kPrefixesOfNumbers.begin(), kPrefixesOfNumbers.end()}};
  for (char initial = 'A'; initial <= 'Z'; ++initial) prefixes.always.emplace(1, initial);
  return prefixes;
}

MosesPrefixes read_moses_prefixes(const std::filesystem::path& path) {
  const std::string bytes = read_bytes(path);
  const auto refuse = [&](std::int64_t line, std::string_view rule, std::string_view fact) {
    throw FileError(text("prepare: --moses-prefixes must name a file of ", rule, ", got ", fact, " in line ", line,
                         " of '", path.string(), "'"));
  };
  if (const std::size_t wrong = find_invalid_utf8(bytes); wrong < bytes.size())
    refuse(line_number(bytes, wrong), "UTF-8", byte_text(bytes[wrong]));
  MosesPrefixes prefixes;
  std::int64_t number = 0;
  for (std::string_view rest = bytes; !rest.empty();) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    line = without_space_behind(line);
    if (line.empty() || line.starts_with('#')) continue;
    const bool of_numbers = line.ends_with(kNumbersOnly);
    if (of_numbers) line = without_space_behind(line.substr(0, line.size() - kNumbersOnly.size()));
    if (line.find_first_of(" \t") != std::string_view::npos)
      refuse(number, text("prefixes, one a line, with nothing but ", kNumbersOnly, " behind them"),
             text("'", line, "'"));
    (of_numbers ? prefixes.before_numbers : prefixes.always).emplace(line);
  }
  if (prefixes.always.empty() && prefixes.before_numbers.empty())
    throw FileError(text("prepare: --moses-prefixes must name a file of prefixes, got none in '", path.string(), "'"));
  return prefixes;
}

}  // namespace engram::data
