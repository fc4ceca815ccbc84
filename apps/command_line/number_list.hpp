#pragma once
/// Lists of numbers as options of the command line have them.

#include <cstdint>
#include <string_view>
#include <vector>

namespace engram {

/// "32,64,96" in increasing order, each once. Throws UsageError naming `option` for anything but whole numbers from 1
/// on, and for an empty list.
std::vector<std::int64_t> parse_lengths(std::string_view written, std::string_view option);

/// "0.1,0.5,1" as written. Throws UsageError naming `option` for anything but numbers above 0 and up to 1, and for an
/// empty list.
std::vector<double> parse_shares(std::string_view written, std::string_view option);

/// first, first + step, ... up to `longest`. Throws UsageError for a first or step below 1 and a longest below first.
std::vector<std::int64_t> lengths_up_to(std::int64_t first, std::int64_t step, std::int64_t longest);

}  // namespace engram
