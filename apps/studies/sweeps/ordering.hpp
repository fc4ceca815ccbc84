#pragma once
/// Whether the variants of a sweep are in an order that somebody expects: `engram orderings`.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/report/csv_table.hpp"
#include "apps/studies/sweeps/sweep_result.hpp"
#include "core/names.hpp"

namespace engram {

enum class Relation : std::uint8_t { less, less_or_equal, greater, greater_or_equal };

/// "WHAT: COLUMN: a > b > c", each variant against the next one, or "WHAT: COLUMN: a ~5% b ~5% c", all against all.
struct Claim {
  std::string what;                  ///< in words
  std::string column;                ///< of sweep.csv, for example test_ppl
  std::vector<std::string> names;    ///< of variants, two or more
  std::vector<Relation> relations;   ///< between neighbours; empty: alike
  std::optional<double> difference;  ///< alike: how much the largest may be above the smallest, of the smallest
};
/// Throws UsageError for what is none of this.
Claim parse_claim(std::string_view written);

enum class Verdict : std::uint8_t {
  holds,
  fails,
  unknown  ///< a variant is not done
};
constexpr auto names_of(Verdict) {
  return std::to_array<Named<Verdict>>(
      {{Verdict::holds, "holds"}, {Verdict::fails, "does not hold"}, {Verdict::unknown, "cannot be told"}});
}

struct JudgedClaim {
  Claim claim;
  Verdict verdict = Verdict::unknown;
  std::vector<std::optional<Spread>> figures;  ///< one for each name; without several seeds all of it is the mean
  std::vector<bool> broken;                    ///< of each relation, whether the means say otherwise
  /// Of several seeds: whether it holds whichever seed of one variant is put beside whichever of the next. None with
  /// one seed, and where the verdict is not `holds`.
  std::optional<bool> every_seed;
  std::string reason;  ///< of what cannot be told
};

/// `sweep`: sweep.csv. Judged by means over seeds. Throws UsageError for a column or a variant that is not there and
/// for a field that is no number, as several memories in one field are.
JudgedClaim judge(const Claim& claim, const CsvTable& sweep);

/// One line for each claim, with the figures, and how many hold.
std::string table_of(const std::vector<JudgedClaim>& claims);
nlohmann::json json_of(const std::vector<JudgedClaim>& claims);

}  // namespace engram
