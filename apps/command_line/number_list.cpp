#include "apps/command_line/number_list.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "core/error.hpp"

namespace engram {
namespace {

template <class Number>
std::vector<Number> parse_numbers(std::string_view written, std::string_view option, std::string_view rule,
                                  auto valid) {
  std::vector<Number> numbers;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = std::min(written.find(',', begin), written.size());
    const std::string_view one = written.substr(begin, comma - begin);
    Number number{};
    const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), number);
    if (error != std::errc() || end != one.data() + one.size() || !valid(number))
      throw UsageError(text(option, " must be ", rule, " with commas between them, got '", written, "'"));
    numbers.push_back(number);
    if (comma == written.size()) return numbers;
    begin = comma + 1;
  }
}

}  // namespace

std::vector<std::int64_t> parse_lengths(std::string_view written, std::string_view option) {
  auto lengths = parse_numbers<std::int64_t>(written, option, "whole numbers from 1 on",
                                             [](std::int64_t length) { return length >= 1; });
  std::ranges::sort(lengths);
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

std::vector<double> parse_shares(std::string_view written, std::string_view option) {
  return parse_numbers<double>(written, option, "numbers above 0 and up to 1",
                               [](double share) { return share > 0 && share <= 1; });
}

std::vector<std::int64_t> lengths_up_to(std::int64_t first, std::int64_t step, std::int64_t longest) {
  if (first < 1 || step < 1 || longest < first)
    throw UsageError(text("lengths must begin at 1 or later and grow by 1 or more up to a longest, got first ", first,
                          ", step ", step, ", longest ", longest));
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = first; length <= longest; length += step) lengths.push_back(length);
  return lengths;
}

}  // namespace engram
