#include "apps/report/csv_table.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram {
namespace {

class Reader {
 public:
  Reader(std::string_view bytes, std::string_view of) : bytes_(bytes), of_(of) {}

  bool at_end() const { return place_ >= bytes_.size(); }
  /// The fields up to the next line end, which is taken too.
  std::vector<std::string> line();

 private:
  std::string field() { return !at_end() && bytes_[place_] == '"' ? quoted() : bare(); }
  std::string quoted();
  std::string bare();
  bool take(std::string_view what);
  [[noreturn]] void refuse(std::string_view what) const;

  std::string_view bytes_, of_;
  std::size_t place_ = 0, line_ = 0;
};

void Reader::refuse(std::string_view what) const {
  throw FileError(text("csv: ", of_, ": line ", line_, " must be fields with commas between them, got ", what));
}

bool Reader::take(std::string_view what) {
  if (!bytes_.substr(place_).starts_with(what)) return false;
  place_ += what.size();
  return true;
}

std::string Reader::quoted() {
  std::string field;
  ++place_;
  while (true) {
    if (at_end()) refuse("a quote that is not closed");
    if (take("\"\"")) {
      field += '"';
    } else if (take("\"")) {
      return field;
    } else {
      field += bytes_[place_++];
    }
  }
}

std::string Reader::bare() {
  const std::size_t end = std::min(bytes_.find_first_of(",\"\r\n", place_), bytes_.size());
  std::string field(bytes_.substr(place_, end - place_));
  place_ = end;
  return field;
}

std::vector<std::string> Reader::line() {
  ++line_;
  std::vector<std::string> fields;
  do {
    fields.push_back(field());
  } while (take(","));
  if (!at_end() && !take("\r\n") && !take("\n")) refuse("a quote or carriage return inside a field without quotes");
  return fields;
}

}  // namespace

std::size_t CsvTable::column(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::find(names, name) - names.begin());
}

CsvTable parse_csv(std::string_view bytes, std::string_view of) {
  Reader reader(bytes, of);
  CsvTable table;
  if (reader.at_end()) throw FileError(text("csv: ", of, ": must have a first line with names, got nothing"));
  table.names = reader.line();
  while (!reader.at_end()) {
    table.rows.push_back(reader.line());
    if (table.rows.back().size() != table.names.size())
      throw FileError(text("csv: ", of, ": row ", table.rows.size(), " must have ", table.names.size(), " fields, got ",
                           table.rows.back().size()));
  }
  return table;
}

}  // namespace engram
