#include "tests/exercises/05_set_and_add.hpp"

#include <cstddef>

namespace engram::exercises {
namespace {

void give_product(const GradientPlace& place, std::span<const double> factor, std::span<const double> dy) {
  for (std::size_t i = 0; i < place.numbers.size(); ++i) {
    const double number = factor[i] * dy[i];
    place.numbers[i] = place.write == Write::add ? place.numbers[i] + number : number;
  }
}

}  // namespace

void multiply_backward(std::span<const double> a, std::span<const double> b, std::span<const double> dy,
                       const GradientPlace& da, const GradientPlace& db) {
  give_product(da, b, dy);
  give_product(db, a, dy);
}

Write word_for(std::vector<bool>& begun, int variable) {
  const auto place = static_cast<std::size_t>(variable);
  if (begun[place]) return Write::add;
  begun[place] = true;
  return Write::set;
}

}  // namespace engram::exercises
