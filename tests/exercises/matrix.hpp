#pragma once
/// A matrix for exercises: rows and columns of doubles, one row after the other, and every access checked.

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace engram::exercises {

class Matrix {
 public:
  Matrix() = default;
  /// All zero.
  Matrix(int rows, int columns) : Matrix(rows, columns, 0.0) {}
  Matrix(int rows, int columns, double value)
      : rows_(rows), columns_(columns), numbers_(static_cast<std::size_t>(rows) * columns, value) {}
  /// Row by row; there must be rows * columns numbers.
  Matrix(int rows, int columns, std::vector<double> numbers)
      : rows_(rows), columns_(columns), numbers_(std::move(numbers)) {
    if (numbers_.size() != static_cast<std::size_t>(rows) * columns)
      throw std::out_of_range(size() + " needs other than " + std::to_string(numbers_.size()) + " numbers");
  }

  int rows() const { return rows_; }
  int columns() const { return columns_; }

  /// Throws std::out_of_range for a place that it does not have.
  double& operator()(int row, int column) { return numbers_[place(row, column)]; }
  double operator()(int row, int column) const { return numbers_[place(row, column)]; }

  std::span<double> row(int index) { return std::span(numbers_).subspan(place(index, 0), columns_); }
  std::span<const double> row(int index) const { return std::span(numbers_).subspan(place(index, 0), columns_); }

  const std::vector<double>& numbers() const { return numbers_; }
  std::vector<double>& numbers() { return numbers_; }

 private:
  std::string size() const {
    return "a matrix of " + std::to_string(rows_) + " rows and " + std::to_string(columns_) + " columns";
  }
  std::size_t place(int row, int column) const {
    if (row < 0 || row >= rows_ || column < 0 || column >= columns_)
      throw std::out_of_range(size() + " has no place (" + std::to_string(row) + ", " + std::to_string(column) + ")");
    return static_cast<std::size_t>(row) * columns_ + column;
  }

  int rows_ = 0, columns_ = 0;
  std::vector<double> numbers_;
};

}  // namespace engram::exercises
