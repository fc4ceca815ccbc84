#pragma once
/// Which variants of a configuration a sweep trains, as the command line says it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace engram {

struct SweepVariant {
  std::string name;                    ///< also of its folder: letters, digits, '.', '_', '-', '+'
  std::vector<std::string> overrides;  ///< section.key=value
};

/// `vary`: each `section.key=v1,v2,...`; a value that contains commas needs semicolons between the values:
/// `section.key=1,2;3,4`. All together form a grid, the last one changing fastest. Its variants get `names` in this
/// order, or without names one made from keys and values: slots-16_layers-2.
/// `variants`: each `NAME:section.key=value,section.key=value`; a part without '=' belongs to the value before it. They
/// follow the grid. `NAME` alone is the configuration as it is.
/// Without both: that configuration, as "base". Throws UsageError for what is none of this, for a key that is given
/// twice, for as many names as there are not variants, and for a name that is given twice or no folder can have.
std::vector<SweepVariant> plan_variants(const std::vector<std::string>& vary, const std::vector<std::string>& variants,
                                        const std::vector<std::string>& names);

/// "1,2,3"; empty: none. Throws UsageError for anything but whole numbers from 0 on, each once.
std::vector<std::uint64_t> parse_seeds(std::string_view written);

/// What stands between the separators, with blanks around it taken off.
std::vector<std::string> split_list(std::string_view list, char separator);

}  // namespace engram
