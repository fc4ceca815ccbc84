#pragma once
/// Tables that were written as CSV, read again.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace engram {

struct CsvTable {
  std::vector<std::string> names;              ///< of the columns, from the first line
  std::vector<std::vector<std::string>> rows;  ///< a field for every column

  /// Place of the column of this name; names.size() if there is none.
  std::size_t column(std::string_view name) const;
};

/// RFC 4180: fields with commas, quotes or line ends are in quotes, a quote in them is written twice; lines end with LF
/// or CR LF. `of`: what is read, for messages. Throws FileError for a table without a first line, a line with another
/// number of fields than that one has, and quotes that are not closed or stand inside a bare field.
CsvTable parse_csv(std::string_view bytes, std::string_view of);

}  // namespace engram
