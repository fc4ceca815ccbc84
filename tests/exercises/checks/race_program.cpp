/// Runs the kernel of exercise 14 in a program that ThreadSanitizer watches. Its report is the result.

#include <cstdio>
#include <vector>

#include "tests/exercises/14_race.hpp"
#include "tests/simulated/device_fixture.hpp"

int main() {
  engram::cuda::tests::DeviceFixture device;
  const std::vector<float> x(64, 1);
  std::vector<float> sums(1);
  engram::exercises::block_sums(device.step, x.data(), sums.data(), 1, 64);
  std::printf("the sum of 64 ones is %g\n", static_cast<double>(sums[0]));
  return 0;
}
