#pragma once
/// A drawing as SVG 1.1 text: shapes and labels on a white ground, no scripts, no fonts or files from elsewhere. All
/// lengths are pixels, y grows downwards. https://www.w3.org/TR/SVG11/

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace engram {

/// `&`, `<`, `>` and quotes as entities. Control characters that XML forbids and bytes that are no UTF-8 become U+FFFD.
std::string escaped_xml(std::string_view text);

struct SvgSize {
  double width = 0, height = 0;
};

struct TextStyle {
  enum class Anchor : unsigned char { start, middle, end };

  double size = 12;  ///< of the font
  Anchor anchor = Anchor::start;
  std::string_view colour = "#1a1a1a";
  bool bold = false;
  bool upwards = false;  ///< turned by 90 degrees, to be read from below
  bool slanted = false;  ///< turned by 35 degrees, rising
};

struct Stroke {
  std::string_view colour = "#1a1a1a";
  double width = 1;
  std::string_view dash = {};  ///< lengths of dashes and gaps, "4 2"; empty: a whole line
};

/// A number as a drawing has it: a hundredth of a unit is enough, and shorter to write.
std::string svg_number(double value);

class SvgCanvas {
 public:
  using Point = std::pair<double, double>;

  /// `name` is what programs for the blind read, and browsers show as the tab's title.
  SvgCanvas(SvgSize size, std::string_view name);
  /// For paper: lengths are points, 72 to an inch, and the drawing says its size in millimetres.
  static SvgCanvas on_paper(SvgSize points, std::string_view name);

  /// `tooltip`: shown while the pointer is on it; empty: none. Colours are CSS colours.
  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view tooltip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view colour, double width = 1);
  /// Through all points, which are at least one.
  void polyline(const std::vector<Point>& points, std::string_view colour, double width, std::string_view tooltip = {});
  void polyline(const std::vector<Point>& points, const Stroke& stroke, std::string_view tooltip = {});
  /// A filled area. `opacity`: in [0, 1].
  void polygon(const std::vector<Point>& points, std::string_view fill, double opacity = 1,
               std::string_view tooltip = {});
  void circle(double x, double y, double radius, std::string_view fill, std::string_view tooltip = {});
  /// Shapes of one colour with sharp edges, as the attribute d of a path has them.
  void path(std::string_view shapes, std::string_view fill);
  /// What is drawn until end_view() is cut off at the rectangle. Lengths stay as they are.
  void begin_view(double x, double y, double width, double height);
  void end_view() { body_ += "</svg>\n"; }
  /// The baseline of the text begins, has its middle or ends at (x, y).
  void text(double x, double y, std::string_view content, const TextStyle& style = {});

  /// The whole document.
  std::string document() const { return body_ + "</svg>\n"; }

 private:
  SvgCanvas(SvgSize size, std::string_view name, std::string_view width, std::string_view height);

  std::string body_;
};

/// How wide a text will be at most, nearly: the fonts of browsers differ.
double text_width(std::string_view text, double size);

}  // namespace engram
