#pragma once
/// What a person would see: a terminal that understands as much as progress uses.

#include <string>
#include <string_view>
#include <vector>

namespace engram::harness {

/// Whether a narrower window breaks rows anew, as most terminals do, or cuts them off, as the oldest do.
enum class Narrowing { wraps, cuts };

class TerminalScreen {
 public:
  explicit TerminalScreen(std::size_t columns, Narrowing narrowing = Narrowing::wraps)
      : columns_(columns), narrowing_(narrowing) {}

  /// ASCII, "\r", "\n" and of the sequences that begin with "\x1b[" those of colours and of erasing below. Throws
  /// std::runtime_error for others.
  void write(std::string_view bytes);
  /// The cursor stays on its character.
  void resize(std::size_t columns);

  /// Up to the last that is not blank, without blanks at their ends.
  std::vector<std::string> rows() const;
  /// Rows that ran over the width of the terminal.
  std::size_t overflown() const { return overflown_; }

 private:
  struct Row {
    std::string cells;
    bool goes_on = false;  // in the next row
  };

  void put(char letter);
  void erase_below();
  Row& row_of_cursor();

  std::size_t columns_;
  Narrowing narrowing_;
  std::vector<Row> rows_;
  std::size_t row_ = 0, column_ = 0;  // column_ == columns_: the next character begins a row
  std::size_t overflown_ = 0;
  std::string sequence_;  // of an escape, as far as it has come
};

/// The messages in what a program wrote, wrapped at so many columns: all but its lines of progress.
std::vector<std::string> rows_of_messages(std::string bytes, std::size_t columns);

}  // namespace engram::harness
