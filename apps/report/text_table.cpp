#include "apps/report/text_table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace engram {

std::string aligned(const std::vector<TableColumn>& columns) {
  std::string lines;
  const std::size_t rows = columns.front().cells.size();
  for (std::size_t row = 0; row <= rows; ++row) {
    std::string line;
    for (const TableColumn& column : columns) {
      std::size_t width = column.heading.size();
      for (const std::string& cell : column.cells) width = std::max(width, cell.size());
      const std::string& cell = row == 0 ? column.heading : column.cells[row - 1];
      if (!line.empty()) line += "  ";
      line += column.left ? fmt::format("{:<{}}", cell, width) : fmt::format("{:>{}}", cell, width);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    lines += line + "\n";
  }
  return lines;
}

std::string csv_field(std::string_view value) {
  if (value.find_first_of(",\"\n\r") == value.npos) return std::string(value);
  std::string quoted = "\"";
  for (const char byte : value) quoted += byte == '"' ? std::string("\"\"") : std::string(1, byte);
  return quoted + "\"";
}

}  // namespace engram
