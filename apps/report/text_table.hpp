#pragma once
/// Tables of a report: aligned columns for people, and fields of CSV files.

#include <string>
#include <string_view>
#include <vector>

namespace engram {

/// A column of a table: its heading, and a cell for every row.
struct TableColumn {
  std::string heading;
  std::vector<std::string> cells;
  bool left = false;  ///< aligned; otherwise to the right
};

/// Headings, then the rows, a line each. All columns have as many cells as the first; there is at least one.
std::string aligned(const std::vector<TableColumn>& columns);

/// In quotes where commas, quotes or line ends ask for it: RFC 4180.
std::string csv_field(std::string_view value);

}  // namespace engram
