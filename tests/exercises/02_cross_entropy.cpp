#include "tests/exercises/02_cross_entropy.hpp"

#include <algorithm>
#include <cmath>

#include "tests/exercises/your_code_here.hpp"

namespace engram::exercises {

double cross_entropy(const Matrix& logits, std::span<const int> targets, Matrix& dlogits) {
  // Your code here, in place of the next line: write every element of dlogits, and return the loss.
  your_code_here();
}

}  // namespace engram::exercises
