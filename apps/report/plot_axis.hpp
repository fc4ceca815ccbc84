#pragma once
/// An axis of a plot: which numbers it goes from and to, where they lie on it, and its ticks.

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace engram {

/// From and to.
using PlotRange = std::pair<double, double>;

struct PlotAxis {
  std::string title;                    ///< in words, with the unit
  bool logarithmic = false;             ///< needs numbers above 0
  std::vector<std::string> names;       ///< of 0, 1, 2 ...; empty: it is an axis of numbers
  std::vector<double> ticks;            ///< wanted ones, where there is room for their numbers; empty: round ones
  bool from_zero = false;               ///< unless it is logarithmic
  std::optional<PlotRange> range = {};  ///< instead of one that has room for all points
};

/// A number as an axis shows it: at most six digits; from 100,000 on thousands, millions and so on as k, M, G, T where
/// that is shorter, and ten to a power for very small ones.
std::string axis_number(double value);

class AxisScale {
 public:
  struct Tick {
    double value = 0;
    std::string label;  ///< empty: a small tick without one
  };

  /// `data`: the least and the most of what is drawn. `length`: of the axis, `room`: that a label takes at least,
  /// given its text. Lengths have one unit. Throws Error for a logarithmic axis that 0 or less lies on.
  template <class Room>
  AxisScale(const PlotAxis& axis, PlotRange data, double length, const Room& room)
      : AxisScale(axis, data, length, static_cast<double>(room("00000"))) {
    keep_apart([&room](const std::string& label) { return static_cast<double>(room(label)); });
  }

  /// In [0, 1] from the beginning of the axis to its end; outside for what lies outside.
  double share(double value) const;
  PlotRange range() const { return range_; }
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  AxisScale(const PlotAxis& axis, PlotRange data, double length, double room);
  void set_range(const PlotAxis& axis, PlotRange data);
  void add_round_ticks();
  void add_decade_ticks();
  bool holds(double value) const;
  /// Drops wanted ticks for round ones where their labels would touch; then labels that still would.
  template <class Room>
  void keep_apart(const Room& room);
  bool touches(const Tick& left, const Tick& right, double rooms) const {
    return (share(right.value) - share(left.value)) * length_ < rooms;
  }

  bool logarithmic_, named_, wanted_ = false;
  double length_, apart_;
  PlotRange range_;
  std::vector<Tick> ticks_;
};

template <class Room>
void AxisScale::keep_apart(const Room& room) {
  const auto half = [&room](const Tick& tick) { return room(tick.label) / 2; };
  if (wanted_) {
    bool fits = true;
    for (std::size_t i = 1; i < ticks_.size(); ++i)
      fits = fits && !touches(ticks_[i - 1], ticks_[i], half(ticks_[i - 1]) + half(ticks_[i]));
    if (fits) return;
    ticks_.clear();
    add_round_ticks();
  }
  if (named_) return;
  const Tick* before = nullptr;
  for (Tick& tick : ticks_) {
    if (tick.label.empty()) continue;
    if (before != nullptr && touches(*before, tick, half(*before) + half(tick)))
      tick.label.clear();
    else
      before = &tick;
  }
}

}  // namespace engram
