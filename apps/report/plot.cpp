#include "apps/report/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/report/chart_style.hpp"
#include "apps/report/points.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr double kLine = 1.2, kThin = 0.6, kMarker = 4.2;
/// More points than these are a line without markers; more than the second are not all drawn.
constexpr std::size_t kMostMarked = 30, kMostDrawn = 1200;

/// What a label takes, with the space that must stay beside it.
double label_room(const std::string& label, double font) { return printed_width(label, font) + 0.8 * font; }

/// Slanted names rise by 35 degrees: sine and cosine. They end right of the middle of their part of the axis, and the
/// tops of their letters lean to the left, by more: the first and the difference, with some room, in sizes of the font.
constexpr double kRise = 0.574, kRun = 0.819, kSlantedRight = 0.3, kAside = 0.3;

/// As much of a name as has room, with a sign that it goes on. Never in the middle of a character of UTF-8.
std::string shortened(const std::string& name, double font, double room) {
  constexpr double kRounding = 1e-6;  // of lengths in points: the axis begins where the longest name fits exactly
  if (printed_width(name, font) <= room + kRounding) return name;
  std::string kept = name;
  while (!kept.empty() && printed_width(kept + "…", font) > room) {
    while (kept.size() > 1 && (static_cast<std::uint8_t>(kept.back()) & 0xC0) == 0x80) kept.pop_back();
    kept.pop_back();
  }
  return kept + "…";
}

struct Extent {
  double least = INFINITY, most = -INFINITY;

  void take(double value) {
    if (!std::isfinite(value)) throw Error(text("plot: what is drawn must be numbers, got ", value));
    least = std::min(least, value);
    most = std::max(most, value);
  }
  void take(const std::optional<PlotRange>& range) {
    if (!range) return;
    take(range->first);
    take(range->second);
  }
  PlotRange range() const {
    if (!(most >= least)) throw Error("plot: there must be points, got none");
    return {least, most};
  }
};

Extent extent_x(const Plot& plot) {
  Extent extent;
  for (const PlotSeries& series : plot.series)
    for (const PlotPoint& point : series.points) {
      extent.take(point.x);
      extent.take(point.across);
    }
  return extent;
}

Extent extent_y(const Plot& plot) {
  Extent extent;
  for (const PlotSeries& series : plot.series)
    for (const PlotPoint& point : series.points) {
      extent.take(point.y);
      extent.take(point.up);
    }
  return extent;
}

/// One plot while it is drawn.
class PlotDrawing {
 public:
  PlotDrawing(SvgCanvas& canvas, const PlotFrame& frame, const Plot& plot);
  void draw();

 private:
  /// Where the axes are, and whether names below them stand slanted. The y axis' labels say how much the x axis has.
  void place();
  void draw_axes();
  void draw_x_label(const AxisScale::Tick& tick);
  void draw_series(std::size_t index);
  void draw_bars(std::size_t index);
  void draw_band(const PlotSeries& series, const SeriesLook& look);
  void draw_whiskers(double x, double y, const PlotPoint& point, std::string_view colour);
  void draw_labels();
  std::string said(const PlotSeries& series, const PlotPoint& point) const;

  /// One line with markers beside one without would look as if they were of two kinds.
  bool is_marked() const {
    return std::ranges::all_of(plot_.series,
                               [](const PlotSeries& series) { return series.points.size() <= kMostMarked; });
  }

  double to_x(double value) const { return left_ + (right_ - left_) * x_->share(value); }
  double to_y(double value) const { return bottom_ - (bottom_ - top_) * y_->share(value); }
  /// The middle of a bar.
  double bar_x(std::size_t index, const PlotPoint& point) const {
    return to_x(point.x) +
           (static_cast<double>(index) - (static_cast<double>(plot_.series.size()) - 1) / 2) * bar_width();
  }
  double bar_width() const {
    return 0.8 * (to_x(1) - to_x(0)) / static_cast<double>(std::max<std::size_t>(1, plot_.series.size()));
  }

  SvgCanvas& canvas_;
  const PlotFrame& frame_;
  const Plot& plot_;
  double left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;  // of the area between the axes
  bool slanted_ = false;
  std::optional<AxisScale> x_, y_;
};

PlotDrawing::PlotDrawing(SvgCanvas& canvas, const PlotFrame& frame, const Plot& plot)
    : canvas_(canvas), frame_(frame), plot_(plot) {}

void PlotDrawing::place() {
  const double font = frame_.font;
  const auto room = [font](const std::string& label) { return label_room(label, font); };
  const PlotRange across = extent_x(plot_).range(), up = extent_y(plot_).range();
  top_ = frame_.y + font * (plot_.title.empty() ? 0.7 : 2.2);
  right_ = frame_.x + frame_.width - 0.6 * font;
  bottom_ = frame_.y + frame_.height - (plot_.x.title.empty() ? 2 : 3.6) * font;
  const auto upright = [&] {
    y_.emplace(plot_.y, up, bottom_ - top_, [font](const std::string&) { return 1.3 * font; });
    double widest = 0;
    for (const AxisScale::Tick& tick : y_->ticks()) widest = std::max(widest, printed_width(tick.label, font));
    left_ = frame_.x + widest + 2.3 * font;
  };
  upright();
  double longest = 0;
  for (const std::string& name : plot_.x.names) longest = std::max(longest, printed_width(name, font));
  const double each = (right_ - left_) / std::max(1.0, static_cast<double>(plot_.x.names.size()));
  slanted_ = !plot_.x.names.empty() && longest + 0.5 * font > each;
  if (slanted_) {
    // A third of the height and of the width is enough for names: the plot must be there, and longer ones are
    // shortened.
    bottom_ -= std::min(kRise * longest, frame_.height / 3) - (plot_.x.title.empty() ? 0.6 * font : 0);
    upright();
    // A name ends below the middle of its part of the axis, which moves with the axis' beginning.
    double needed = left_;
    for (std::size_t i = 0; i < plot_.x.names.size(); ++i) {
      const double share = (static_cast<double>(i) + 0.5) / static_cast<double>(plot_.x.names.size());
      const double end = frame_.x + kRun * printed_width(plot_.x.names[i], font) + kAside * font;
      needed = std::max(needed, (end - share * right_) / (1 - share));
    }
    left_ = std::max(left_, std::min(needed, frame_.x + frame_.width / 3));
  }
  if (right_ - left_ < 3 * font || bottom_ - top_ < 2 * font)
    throw UsageError(text("figure: a panel must have room beside its labels, got ", std::lround(frame_.width), " x ",
                          std::lround(frame_.height), " points with letters of ", font,
                          "\n  --width and --height make it larger, --font and --columns leave more of it"));
  x_.emplace(plot_.x, across, right_ - left_, room);
}

void PlotDrawing::draw_x_label(const AxisScale::Tick& tick) {
  const double at = to_x(tick.value), font = frame_.font;
  if (slanted_) {
    const double room = std::min((at - frame_.x - kAside * font) / kRun, frame_.height / 3 / kRise);
    return canvas_.text(at + kSlantedRight * font, bottom_ + 1.1 * font, shortened(tick.label, font, room),
                        {.size = font, .anchor = Anchor::end, .colour = kBlack, .slanted = true});
  }
  canvas_.text(at, bottom_ + 1.5 * font, tick.label, {.size = font, .anchor = Anchor::middle, .colour = kBlack});
}

void PlotDrawing::draw_axes() {
  const double font = frame_.font, tick_length = 0.35 * font;
  for (const AxisScale::Tick& tick : y_->ticks()) {
    const double at = to_y(tick.value);
    if (!tick.label.empty()) canvas_.line(left_, at, right_, at, kGrid, 0.5);
    canvas_.line(left_ - (tick.label.empty() ? 0.5 : 1) * tick_length, at, left_, at, kBlack, kThin);
    canvas_.text(left_ - 0.6 * font, at + 0.35 * font, tick.label,
                 {.size = font, .anchor = Anchor::end, .colour = kBlack});
  }
  // Names that would lie on each other are left out, every so many.
  const double each = (right_ - left_) / static_cast<double>(std::max<std::size_t>(1, plot_.x.names.size()));
  const std::size_t stride = slanted_ ? static_cast<std::size_t>(std::max(1.0, std::ceil(1.15 * font / each))) : 1;
  for (std::size_t i = 0; i < x_->ticks().size(); ++i) {
    const AxisScale::Tick& tick = x_->ticks()[i];
    if (plot_.x.names.empty())
      canvas_.line(to_x(tick.value), bottom_, to_x(tick.value), bottom_ + (tick.label.empty() ? 0.5 : 1) * tick_length,
                   kBlack, kThin);
    if (i % stride == 0) draw_x_label(tick);
  }
  canvas_.polyline({{left_, top_}, {left_, bottom_}, {right_, bottom_}}, kBlack, kThin);
  canvas_.text((left_ + right_) / 2, frame_.y + frame_.height - 0.6 * font, plot_.x.title,
               {.size = font, .anchor = Anchor::middle, .colour = kBlack});
  // Beside the middle of the axis, or where it has room; one that is longer than its panel is high is set smaller, and
  // shortened where that is not enough.
  const double size = std::clamp(frame_.height / std::max(1.0, printed_width(plot_.y.title, 1)), 0.6 * font, font);
  const std::string title = shortened(plot_.y.title, size, frame_.height);
  const double half = printed_width(title, size) / 2;
  const double lowest = std::max(frame_.y + half, frame_.y + frame_.height - half);
  canvas_.text(frame_.x + font, std::clamp((top_ + bottom_) / 2, std::min(frame_.y + half, lowest), lowest), title,
               {.size = size, .anchor = Anchor::middle, .colour = kBlack, .upwards = true});
  if (!plot_.title.empty())
    canvas_.text((left_ + right_) / 2, frame_.y + 1.2 * font, plot_.title,
                 {.size = font, .anchor = Anchor::middle, .colour = kBlack, .bold = true});
}

std::string PlotDrawing::said(const PlotSeries& series, const PlotPoint& point) const {
  const auto place = static_cast<std::size_t>(std::max(0.0, point.x));
  const std::string at = place < plot_.x.names.size() ? plot_.x.names[place] : fmt::format("{:.6g}", point.x);
  return fmt::format("{}{}{}: {:.6g}", series.name, series.name.empty() ? "" : ", ",
                     point.label.empty() ? at : point.label, point.y);
}

void PlotDrawing::draw_whiskers(double x, double y, const PlotPoint& point, std::string_view colour) {
  constexpr double kCap = 2;
  if (point.up && point.up->second > point.up->first) {
    const double low = to_y(point.up->first), high = to_y(point.up->second);
    canvas_.line(x, low, x, high, colour, 0.8);
    for (const double end : {low, high}) canvas_.line(x - kCap, end, x + kCap, end, colour, 0.8);
  }
  if (point.across && point.across->second > point.across->first) {
    const double low = to_x(point.across->first), high = to_x(point.across->second);
    canvas_.line(low, y, high, y, colour, 0.8);
    for (const double end : {low, high}) canvas_.line(end, y - kCap, end, y + kCap, colour, 0.8);
  }
}

void PlotDrawing::draw_bars(std::size_t index) {
  const PlotSeries& series = plot_.series[index];
  const SeriesLook look = series_look(index);
  for (const PlotPoint& point : series.points) {
    const double middle = bar_x(index, point), width = bar_width(), top = to_y(point.y);
    canvas_.rect(middle - 0.46 * width, std::min(top, bottom_), 0.92 * width, std::abs(bottom_ - top), look.colour,
                 said(series, point));
    draw_whiskers(middle, top, point, kBlack);
  }
}

void PlotDrawing::draw_band(const PlotSeries& series, const SeriesLook& look) {
  std::vector<SvgCanvas::Point> upper, lower;
  for (const PlotPoint& point : series.points) {
    if (!point.up) continue;
    upper.emplace_back(to_x(point.x), to_y(point.up->second));
    lower.emplace_back(to_x(point.x), to_y(point.up->first));
  }
  upper.insert(upper.end(), lower.rbegin(), lower.rend());
  if (lower.size() > 1) canvas_.polygon(upper, look.colour, 0.15);
}

/// Those of a line that are drawn.
PlotSeries thinned(const PlotSeries& series) {
  if (series.points.size() <= kMostDrawn) return series;
  std::vector<double> y;
  for (const PlotPoint& point : series.points) y.push_back(point.y);
  PlotSeries kept{series.name, {}, series.joined};
  for (const std::size_t place : kept_places(y, kMostDrawn)) kept.points.push_back(series.points[place]);
  return kept;
}

void PlotDrawing::draw_series(std::size_t index) {
  const PlotSeries series = thinned(plot_.series[index]);
  const SeriesLook look = series_look(index);
  if (plot_.bands) draw_band(series, look);
  std::vector<SvgCanvas::Point> line;
  for (const PlotPoint& point : series.points) line.emplace_back(to_x(point.x), to_y(point.y));
  const bool marked = is_marked() || !series.joined;
  if (series.joined && line.size() > 1)
    canvas_.polyline(line, {.colour = look.colour, .width = kLine, .dash = look.dash}, series.name);
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto& [x, y] = line[i];
    if (!plot_.bands) draw_whiskers(x, y, series.points[i], look.colour);
    if (marked) draw_marker(canvas_, x, y, kMarker, look, said(series, series.points[i]));
  }
}

/// Beside each point where nothing else is, if there is such a place.
void PlotDrawing::draw_labels() {
  struct Box {
    double left, top, right, bottom;
    bool meets(const Box& other) const {
      return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
  };
  constexpr double kClear = kMarker / 2;
  std::vector<Box> taken;
  for (const PlotSeries& series : plot_.series)
    for (const PlotPoint& point : series.points) {
      const double x = to_x(point.x), y = to_y(point.y);
      taken.push_back({x - kClear, y - kClear, x + kClear, y + kClear});
      if (point.up) taken.push_back({x - 2, to_y(point.up->second), x + 2, to_y(point.up->first)});
      if (point.across) taken.push_back({to_x(point.across->first), y - 2, to_x(point.across->second), y + 2});
    }
  const double size = 0.9 * frame_.font;
  for (std::size_t index = 0; index < plot_.series.size(); ++index)
    for (const PlotPoint& point : plot_.series[index].points) {
      if (point.label.empty()) continue;
      const double x = to_x(point.x), y = to_y(point.y), wide = printed_width(point.label, size);
      const double aside = kClear + 2, above = kClear + 2.5;
      const auto box_at = [&](double left, double top) { return Box{left, top, left + wide, top + 0.9 * size}; };
      const double level = y - 0.45 * size, over = y - above - 0.9 * size, under = y + above;
      const std::array<Box, 8> places{box_at(x + aside, level),   box_at(x - aside - wide, level),
                                      box_at(x - wide / 2, over), box_at(x - wide / 2, under),
                                      box_at(x + aside, over),    box_at(x - aside - wide, over),
                                      box_at(x + aside, under),   box_at(x - aside - wide, under)};
      const auto free = std::ranges::find_if(places, [&](const Box& box) {
        return box.left >= left_ && box.right <= frame_.x + frame_.width && box.top >= frame_.y &&
               box.bottom <= bottom_ &&
               std::ranges::none_of(taken, [&box](const Box& other) { return box.meets(other); });
      });
      const Box& box = free == places.end() ? places.front() : *free;
      taken.push_back(box);
      canvas_.text((box.left + box.right) / 2, box.bottom - 0.15 * size, point.label,
                   {.size = size, .anchor = Anchor::middle, .colour = series_look(index).colour});
    }
}

void PlotDrawing::draw() {
  place();
  draw_axes();
  const bool cut = plot_.y.range.has_value() || plot_.x.range.has_value();
  if (cut) canvas_.begin_view(left_, top_, right_ - left_, bottom_ - top_);
  for (std::size_t index = 0; index < plot_.series.size(); ++index) plot_.bars ? draw_bars(index) : draw_series(index);
  if (cut) canvas_.end_view();
  if (!plot_.bars) draw_labels();
}

}  // namespace

void draw_plot(SvgCanvas& canvas, const PlotFrame& frame, const Plot& plot) { PlotDrawing(canvas, frame, plot).draw(); }

}  // namespace engram
