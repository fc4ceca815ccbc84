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
};

class SvgCanvas {
 public:
  using Point = std::pair<double, double>;

  /// `name` is what programs for the blind read, and browsers show as the tab's title.
  SvgCanvas(SvgSize size, std::string_view name);

  /// `tooltip`: shown while the pointer is on it; empty: none. Colours are CSS colours.
  void rect(double x, double y, double width, double height, std::string_view fill, std::string_view tooltip = {});
  void line(double x1, double y1, double x2, double y2, std::string_view colour, double width = 1);
  /// Through all points, which are at least one.
  void polyline(const std::vector<Point>& points, std::string_view colour, double width, std::string_view tooltip = {});
  /// The baseline of the text begins, has its middle or ends at (x, y).
  void text(double x, double y, std::string_view content, const TextStyle& style = {});

  /// The whole document.
  std::string document() const { return body_ + "</svg>\n"; }

 private:
  std::string body_;
};

/// How wide a text will be at most, nearly: the fonts of browsers differ.
double text_width(std::string_view text, double size);

}  // namespace engram
