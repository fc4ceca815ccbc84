#include "apps/report/svg_canvas.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace engram {
namespace {

/// Bytes of the UTF-8 sequence that `text` begins with; 0 when it begins with none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::size_t length = byte(0) < 0x80   ? 1
                             : byte(0) < 0xC2 ? 0
                             : byte(0) < 0xE0 ? 2
                             : byte(0) < 0xF0 ? 3
                             : byte(0) < 0xF5 ? 4
                                              : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Overlong forms, surrogates and what lies beyond the last plane.
  if (byte(0) == 0xE0 && byte(1) < 0xA0) return 0;
  if (byte(0) == 0xED && byte(1) > 0x9F) return 0;
  if (byte(0) == 0xF0 && byte(1) < 0x90) return 0;
  if (byte(0) == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

std::string attribute(std::string_view name, std::string_view value) {
  return fmt::format(" {}=\"{}\"", name, escaped_xml(value));
}

std::string closed(std::string_view element, std::string_view tooltip) {
  if (tooltip.empty()) return "/>\n";
  return fmt::format("><title>{}</title></{}>\n", escaped_xml(tooltip), element);
}

std::string listed(const std::vector<SvgCanvas::Point>& points) {
  std::string list;
  for (const auto& [x, y] : points) list += (list.empty() ? "" : " ") + svg_number(x) + "," + svg_number(y);
  return list;
}

/// Millimetres of so many points.
std::string millimetres(double points) { return svg_number(points * 25.4 / 72) + "mm"; }

}  // namespace

std::string svg_number(double value) {
  std::string written = fmt::format("{:.2f}", value);
  written.erase(written.find_last_not_of('0') + 1);
  if (written.back() == '.') written.pop_back();
  return written == "-0" ? "0" : written;
}

std::string escaped_xml(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const char first = text.front();
    const bool forbidden = static_cast<std::uint8_t>(first) < 0x20 && first != '\n' && first != '\t';
    const bool no_character = text.starts_with("\xEF\xBF\xBE") || text.starts_with("\xEF\xBF\xBF");
    if (length == 0 || forbidden || no_character)
      out += "\uFFFD";
    else if (first == '&')
      out += "&amp;";
    else if (first == '<')
      out += "&lt;";
    else if (first == '>')
      out += "&gt;";
    else if (first == '"')
      out += "&quot;";
    else if (first == '\'')
      out += "&#39;";
    else
      out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(1, length));
  }
  return out;
}

SvgCanvas::SvgCanvas(SvgSize size, std::string_view name)
    : SvgCanvas(size, name, svg_number(size.width), svg_number(size.height)) {}

SvgCanvas SvgCanvas::on_paper(SvgSize points, std::string_view name) {
  return SvgCanvas(points, name, millimetres(points.width), millimetres(points.height));
}

SvgCanvas::SvgCanvas(SvgSize size, std::string_view name, std::string_view width, std::string_view height) {
  body_ = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" viewBox=\"0 0 {} {}\" "
      "font-family=\"Helvetica, Arial, sans-serif\">\n<title>{}</title>\n",
      width, height, svg_number(size.width), svg_number(size.height), escaped_xml(name));
  // Pages in dark mode would show through.
  rect(0, 0, size.width, size.height, "#ffffff");
}

void SvgCanvas::rect(double x, double y, double width, double height, std::string_view fill, std::string_view tooltip) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}{}", svg_number(x), svg_number(y),
                       svg_number(width), svg_number(height), attribute("fill", fill), closed("rect", tooltip));
}

void SvgCanvas::line(double x1, double y1, double x2, double y2, std::string_view colour, double width) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{} stroke-width=\"{}\"/>\n", svg_number(x1),
                       svg_number(y1), svg_number(x2), svg_number(y2), attribute("stroke", colour), svg_number(width));
}

void SvgCanvas::polyline(const std::vector<Point>& points, std::string_view colour, double width,
                         std::string_view tooltip) {
  polyline(points, {.colour = colour, .width = width}, tooltip);
}

void SvgCanvas::polyline(const std::vector<Point>& points, const Stroke& stroke, std::string_view tooltip) {
  body_ +=
      fmt::format("<polyline points=\"{}\" fill=\"none\"{} stroke-width=\"{}\" stroke-linejoin=\"round\"{}{}",
                  listed(points), attribute("stroke", stroke.colour), svg_number(stroke.width),
                  stroke.dash.empty() ? "" : attribute("stroke-dasharray", stroke.dash), closed("polyline", tooltip));
}

void SvgCanvas::polygon(const std::vector<Point>& points, std::string_view fill, double opacity,
                        std::string_view tooltip) {
  body_ += fmt::format("<polygon points=\"{}\"{}{}{}", listed(points), attribute("fill", fill),
                       opacity < 1 ? attribute("fill-opacity", svg_number(opacity)) : "", closed("polygon", tooltip));
}

void SvgCanvas::circle(double x, double y, double radius, std::string_view fill, std::string_view tooltip) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}{}", svg_number(x), svg_number(y), svg_number(radius),
                       attribute("fill", fill), closed("circle", tooltip));
}

void SvgCanvas::path(std::string_view shapes, std::string_view fill) {
  body_ += fmt::format("<path d=\"{}\"{} shape-rendering=\"crispEdges\"/>\n", shapes, attribute("fill", fill));
}

void SvgCanvas::begin_view(double x, double y, double width, double height) {
  body_ += fmt::format("<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">\n",
                       svg_number(x), svg_number(y), svg_number(width), svg_number(height));
}

void SvgCanvas::text(double x, double y, std::string_view content, const TextStyle& style) {
  const char* const anchors[] = {"start", "middle", "end"};
  std::string turn;
  if (style.upwards || style.slanted)
    turn = fmt::format(" transform=\"rotate({} {} {})\"", style.upwards ? -90 : -35, svg_number(x), svg_number(y));
  body_ += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"{}\" text-anchor=\"{}\"{}{}{}>{}</text>\n", svg_number(x),
                       svg_number(y), svg_number(style.size), anchors[static_cast<std::size_t>(style.anchor)],
                       attribute("fill", style.colour), style.bold ? " font-weight=\"bold\"" : "", turn,
                       escaped_xml(content));
}

double text_width(std::string_view text, double size) {
  // Continuation bytes of UTF-8 are no characters of their own.
  const auto characters =
      std::ranges::count_if(text, [](char byte) { return (static_cast<std::uint8_t>(byte) & 0xC0) != 0x80; });
  constexpr double kWidest = 0.6;  // of the font's size: an average of letters, and every digit
  return kWidest * size * static_cast<double>(characters);
}

}  // namespace engram
