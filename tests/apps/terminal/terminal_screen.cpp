#include "tests/apps/terminal/terminal_screen.hpp"

#include <algorithm>
#include <regex>
#include <stdexcept>

namespace engram::harness {

TerminalScreen::Row& TerminalScreen::row_of_cursor() {
  if (rows_.size() <= row_) rows_.resize(row_ + 1);
  return rows_[row_];
}

void TerminalScreen::put(char letter) {
  if (column_ == columns_) {
    row_of_cursor().goes_on = true;
    ++overflown_;
    ++row_;
    column_ = 0;
  }
  std::string& cells = row_of_cursor().cells;
  cells.resize(std::max(cells.size(), column_ + 1), ' ');
  cells[column_++] = letter;
}

void TerminalScreen::erase_below() {
  Row& row = row_of_cursor();
  row.cells.resize(std::min(row.cells.size(), column_));
  row.goes_on = false;
  rows_.resize(row_ + 1);
}

void TerminalScreen::write(std::string_view bytes) {
  for (const char byte : bytes) {
    if (!sequence_.empty()) {
      sequence_ += byte;
      const bool complete = sequence_.size() > 2 && byte >= '@';
      if (sequence_.size() == 2 && byte != '[') throw std::runtime_error("an unknown escape: " + sequence_.substr(1));
      if (!complete) continue;
      if (sequence_ == "\x1b[J")
        erase_below();
      else if (byte != 'm')
        throw std::runtime_error("an unknown sequence: " + sequence_.substr(1));
      sequence_.clear();
    } else if (byte == '\x1b') {
      sequence_ = byte;
    } else if (byte == '\r') {
      column_ = 0;
    } else if (byte == '\n') {
      ++row_;
    } else if (byte >= ' ') {
      put(byte);
    } else {
      throw std::runtime_error("an unknown control character: " + std::to_string(int{byte}));
    }
  }
}

void TerminalScreen::resize(std::size_t columns) {
  if (narrowing_ == Narrowing::cuts) {
    for (Row& row : rows_) row.cells.resize(std::min(row.cells.size(), columns));
    columns_ = columns;
    column_ = std::min(column_, columns);
    return;
  }
  row_of_cursor();
  std::vector<Row> wrapped;
  std::size_t row = 0, column = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    std::string line;
    std::size_t cursor = std::string::npos;
    for (;; ++i) {
      if (i == row_) cursor = line.size() + column_;
      line += rows_[i].cells;
      if (!rows_[i].goes_on || i + 1 == rows_.size()) break;
    }
    const std::size_t first = wrapped.size();
    for (std::size_t at = 0; at == 0 || at < line.size(); at += columns)
      wrapped.push_back({line.substr(at, columns), at + columns < line.size()});
    if (cursor == std::string::npos) continue;
    row = first + cursor / columns;
    column = cursor % columns;
  }
  rows_ = std::move(wrapped);
  columns_ = columns;
  row_ = row;
  column_ = column;
}

std::vector<std::string> TerminalScreen::rows() const {
  std::vector<std::string> shown;
  for (const Row& row : rows_) shown.push_back(row.cells.substr(0, row.cells.find_last_not_of(' ') + 1));
  while (!shown.empty() && shown.back().empty()) shown.pop_back();
  return shown;
}

std::vector<std::string> rows_of_messages(std::string bytes, std::size_t columns) {
  // A line, one that is taken away, and a key that was pressed, which is shown where the cursor is.
  static const std::regex progress("\r(?!\x1b\\[J)[^\r\n]*\x1b\\[J\r|\r\x1b\\[J|\\^[CZ\\\\](?=\r)");
  bytes = std::regex_replace(bytes, progress, "");
  TerminalScreen screen(columns);
  screen.write(bytes);
  return screen.rows();
}

}  // namespace engram::harness
