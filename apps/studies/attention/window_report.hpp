#pragma once
/// What `engram attention` says of a recurrent model with short attention: tables, and the two pictures of figure 3 of
/// Daniluk et al. (2017).

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/studies/attention/read_tokens.hpp"
#include "apps/studies/attention/window_study.hpp"

namespace engram {

struct WindowReport {
  ReadoutKind readout{};
  std::string what;            ///< was read: "article 3 of test"
  std::int64_t positions = 0;  ///< that were read
  WindowMeans means;           ///< of those with a full window
  std::vector<WindowRow> rows;
  ReadTokens tokens;      ///< of the rows
  bool fills_up = false;  ///< columns that show no position have weights too (MissingPositions::zero)
};

/// The means: a line for each offset, and how they are spread.
std::string table_of(const WindowReport& report);
/// Lines `position,token,offset,weight` of the rows, oldest first; without columns that show no position.
std::string csv_of(const WindowReport& report);
/// The means, null without positions.
nlohmann::json json_of(const WindowReport& report);
/// A heat map of the rows: one for each token, columns for offsets, the newest rightmost. Throws UsageError without
/// rows.
std::string svg_of(const WindowReport& report);

/// Lines `offset,weight`, oldest first. Both throw UsageError when no position had a full window.
std::string csv_of(const WindowMeans& means);
/// A bar for each offset, the newest rightmost.
std::string svg_of(const WindowMeans& means, std::string_view title);

}  // namespace engram
