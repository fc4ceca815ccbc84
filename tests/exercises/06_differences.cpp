#include "tests/exercises/06_differences.hpp"

#include <cmath>
#include <cstddef>

#include "tests/exercises/your_code_here.hpp"

namespace engram::exercises {

std::vector<double> numeric_gradient(const ScalarFunction& f, std::vector<double> x) {
  // Your code here, in place of the next line.
  your_code_here();
}

}  // namespace engram::exercises
