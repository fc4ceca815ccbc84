#pragma once
/// Attention over short windows for people: as tables for other programs, and as the two pictures of figure 3 of
/// Daniluk et al. (2017).

#include <string>
#include <string_view>
#include <vector>

#include "apps/studies/attention/attention_report.hpp"
#include "apps/studies/attention/window_study.hpp"

namespace engram {

/// Rows as a picture or a table shows them.
struct ShownWindows {
  const std::vector<WindowRow>& rows;
  const ReadTokens& tokens;  ///< of the rows
  const WindowMeans& means;  ///< for the offsets of columns
  bool fills_up = false;     ///< columns that show no position have weights too (MissingPositions::zero)
};

/// Lines `position,token,offset,weight`, oldest first; without columns that show no position.
std::string windows_csv(const ShownWindows& shown);
/// A heat map: a row for each token, columns for offsets, the newest rightmost. Throws UsageError without rows.
std::string windows_svg(const ShownWindows& shown, std::string_view title);

/// Lines `offset,weight`, oldest first. Both throw UsageError when no position had a full window.
std::string window_means_csv(const WindowMeans& means);
/// A bar for each offset, the newest rightmost.
std::string window_means_svg(const WindowMeans& means, std::string_view title);

}  // namespace engram
