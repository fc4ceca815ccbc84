/// What another project does with Engram's libraries: a product and its gradient on the CPU.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "autograd/functions.hpp"
#include "autograd/tape.hpp"
#include "core/arena.hpp"
#include "core/backend.hpp"
#include "core/step.hpp"

int main() {
  using namespace engram;
  const std::unique_ptr<Backend> backend = open_backend({DeviceKind::cpu});
  HeapAllocator heap{*backend};
  Arena arena{heap};
  Step step{*backend, arena, /*seed=*/1};
  double product = 0, gradient = 0;
  {
    Tape tape(step);
    Tensor left({1, 2}, DType::f64, {DeviceKind::cpu}, arena), right({2, 1}, DType::f64, {DeviceKind::cpu}, arena);
    std::ranges::copy(std::vector<double>{2, 3}, left.data<double>());
    std::ranges::copy(std::vector<double>{5, 7}, right.data<double>());
    const Variable x = tape.leaf(left), y = tape.leaf(right);
    const Variable loss = sum(matmul(x, y));
    product = loss.value().data<const double>()[0];
    tape.backward({loss});
    gradient = tape.gradient(x).data<const double>()[1];
  }
  arena.end_step();
  std::printf("2 * 5 + 3 * 7 = %g, its derivative by 3 is %g\n", product, gradient);
  return product == 31 && gradient == 7 ? 0 : 1;
}
