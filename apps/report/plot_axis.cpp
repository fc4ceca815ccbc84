#include "apps/report/plot_axis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/report/ticks.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr double kNearly = 1e-9;  // of a step, what rounding may lose

/// 1, 2, 5 times powers of ten between two numbers above 0, that and how each begins.
std::vector<std::pair<double, int>> decades_between(PlotRange range) {
  std::vector<std::pair<double, int>> all;
  for (int power = static_cast<int>(std::floor(std::log10(range.first))) - 1; std::pow(10, power) <= range.second;
       ++power)
    for (const int first : {1, 2, 5})
      if (const double value = first * std::pow(10, power);
          value >= range.first * (1 - kNearly) && value <= range.second * (1 + kNearly))
        all.emplace_back(value, first);
  return all;
}

}  // namespace

std::string axis_number(double value) {
  const double size = std::abs(value);
  if (size >= 1e5) {
    constexpr std::array<std::pair<double, char>, 4> kUnits{{{1e12, 'T'}, {1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}}};
    for (const auto& [unit, letter] : kUnits)
      if (size >= unit) {
        std::string short_one = fmt::format("{:.4g}{}", value / unit, letter);
        // 262144 is no 262.1k.
        return std::stod(short_one) * unit == value || size >= 1e9 ? short_one : fmt::format("{:.10g}", value);
      }
  }
  if (size > 0 && size < 1e-3) {
    std::string written = fmt::format("{:.3g}", value);
    const std::size_t power = written.find("e-0");
    if (power != written.npos) written.erase(power + 2, 1);
    return written;
  }
  return fmt::format("{:.6g}", value);
}

AxisScale::AxisScale(const PlotAxis& axis, PlotRange data, double length, double room)
    : logarithmic_(axis.logarithmic && axis.names.empty()),
      named_(!axis.names.empty()),
      length_(length),
      apart_(std::max(16.0, 1.2 * room)) {
  set_range(axis, data);
  for (std::size_t i = 0; i < axis.names.size(); ++i) ticks_.push_back({static_cast<double>(i), axis.names[i]});
  if (named_) return;
  for (const double value : axis.ticks)
    if (holds(value)) ticks_.push_back({value, axis_number(value)});
  wanted_ = !ticks_.empty();
  if (!wanted_) add_round_ticks();
}

void AxisScale::set_range(const PlotAxis& axis, PlotRange data) {
  constexpr double kAround = 0.04;  // of the axis, on both sides of the points
  if (named_) {
    range_ = {-0.5, static_cast<double>(axis.names.size()) - 0.5};
    return;
  }
  range_ = axis.range.value_or(data);
  if (logarithmic_ && !(range_.first > 0))
    throw Error(text("plot: numbers of a logarithmic axis must be above 0, got ", range_.first));
  if (axis.range) return;
  if (logarithmic_) {
    const double ratio = range_.second > range_.first ? std::pow(range_.second / range_.first, kAround) : 1.2;
    range_ = {range_.first / ratio, range_.second * ratio};
    return;
  }
  const bool bottom = axis.from_zero && range_.first >= 0;
  if (bottom) range_.first = 0;
  double margin = kAround * (range_.second - range_.first);
  if (!(margin > 0)) margin = range_.second != 0 ? 0.05 * std::abs(range_.second) : 0.5;
  range_ = {range_.first - (bottom ? 0 : margin), range_.second + margin};
}

double AxisScale::share(double value) const {
  return logarithmic_ ? std::log(value / range_.first) / std::log(range_.second / range_.first)
                      : (value - range_.first) / (range_.second - range_.first);
}

bool AxisScale::holds(double value) const {
  if (logarithmic_ && !(value > 0)) return false;
  const double place = share(value);
  return place >= -kNearly && place <= 1 + kNearly;
}

void AxisScale::add_round_ticks() {
  if (logarithmic_ && range_.second / range_.first > 6) return add_decade_ticks();
  const double step = tick_step(range_.second - range_.first, std::clamp(static_cast<int>(length_ / apart_), 5, 9));
  for (const double tick : ticks_between(range_.first, range_.second, step, kNearly))
    ticks_.push_back({tick, axis_number(tick)});
}

void AxisScale::add_decade_ticks() {
  constexpr double kManyDecades = 3;
  const bool many = std::log10(range_.second / range_.first) > kManyDecades;
  for (const auto& [value, first] : decades_between(range_))
    ticks_.push_back({value, many && first != 1 ? "" : axis_number(value)});
}

}  // namespace engram
