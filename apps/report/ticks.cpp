#include "apps/report/ticks.hpp"

#include <cmath>

namespace engram {

double tick_step(double range, int count) {
  const double rough = range / count, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<double> ticks_between(double least, double most, double step, double near) {
  std::vector<double> ticks;
  const double first = std::ceil(least / step - near);
  for (int i = 0; i < kMostTicks; ++i) {
    const double tick = (first + i) * step + 0.0;  // no -0
    if (!(tick <= most + near * step) || (i > 0 && !(tick > ticks.back()))) break;
    ticks.push_back(tick);
  }
  return ticks;
}

std::vector<double> powers_of_ten_between(double least, double most, double near) {
  std::vector<double> powers;
  const double first = std::floor(std::log10(least));
  for (int i = 0; i < kMostTicks; ++i) {
    const double power = std::pow(10, first + i);
    if (!(power <= most * (1 + near)) || std::isinf(power)) break;
    if (power >= least * (1 - near)) powers.push_back(power);
  }
  return powers;
}

}  // namespace engram
