#include "tests/exercises/04_tape.hpp"

#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "tests/exercises/your_code_here.hpp"

namespace engram::exercises {
namespace {

class Tape final : public ScalarTape {
 public:
  // Your code here, in place of every your_code_here(), and the members that the tape needs, below.
  int leaf(double value) override { your_code_here(); }
  int add(int a, int b) override { your_code_here(); }
  int multiply(int a, int b) override { your_code_here(); }
  int exponential(int a) override { your_code_here(); }

  double value(int place) const override { your_code_here(); }

  void backward(int result) override { your_code_here(); }
  double gradient(int place) const override { your_code_here(); }

 private:
};

}  // namespace

std::unique_ptr<ScalarTape> make_tape() { return std::make_unique<Tape>(); }

}  // namespace engram::exercises
