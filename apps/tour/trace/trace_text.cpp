#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/tour/trace/op_trace.hpp"
#include "core/error.hpp"

namespace engram::tour {
namespace {

constexpr std::size_t kWidth = 80;
constexpr std::int64_t kMostRows = 8;     ///< of a tensor that are printed
constexpr std::size_t kMostElements = 6;  ///< of an input that are compared line by line
constexpr double kIndistinguishable =
    1e-8;  ///< what is left below it is the rounding of a difference, and the machine's

/// Numbers that are zero but for rounding have no sign.
double rounded(double number, double smallest) { return std::abs(number) < smallest / 2 ? 0 : number; }

std::string element_text(const TracedTensor& tensor, std::int64_t element) {
  const double number = tensor.numbers[static_cast<std::size_t>(element)];
  return is_integer(tensor.dtype) ? fmt::format("{:9.0f}", number) : fmt::format("{:9.4f}", rounded(number, 1e-4));
}

/// The rows of a tensor along its last axis, one a line.
std::string rows_text(const TracedTensor& tensor) {
  const std::int64_t columns = tensor.shape.rank() > 0 ? tensor.shape[-1] : 1;
  const std::int64_t rows = tensor.shape.rows();
  std::string lines;
  for (std::int64_t row = 0; row < std::min(rows, kMostRows); ++row) {
    lines += "   ";
    for (std::int64_t column = 0; column < columns; ++column) lines += element_text(tensor, row * columns + column);
    lines += '\n';
  }
  if (rows > kMostRows) lines += fmt::format("     rows that are not shown: {}\n", rows - kMostRows);
  return lines;
}

/// Words after a heading, in as many lines as they need.
std::string wrapped(std::string_view heading, const std::vector<std::string>& words) {
  std::string lines, line(heading);
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = " " + words[i] + (i + 1 < words.size() ? "," : "");
    if (line.size() + word.size() > kWidth) {
      lines += std::exchange(line, "     ") + '\n';
    }
    line += word;
  }
  return lines + line + '\n';
}

std::string write_text(const GradientWrite& write) {
  switch (write.kind) {
    case GradientWrite::Kind::replaced:
      return "set by " + write.kernel;
    case GradientWrite::Kind::in_part:
      return "set in part by " + write.kernel;
    case GradientWrite::Kind::added:
      return "added to by " + write.kernel;
    default:
      return "handed over";
  }
}

std::vector<std::string> write_texts(const std::vector<GradientWrite>& writes) {
  std::vector<std::string> texts;
  for (const GradientWrite& write : writes) texts.push_back(write_text(write));
  return texts;
}

std::string forward_text(const OpTrace& trace) {
  std::string out = "forward\n";
  for (const TracedTensor& input : trace.inputs)
    out +=
        text("  ", input.name, " ", input.shape, input.differentiated ? "" : ", a constant", "\n") + rows_text(input);
  for (const TracedTensor& output : trace.outputs)
    out += text("  ", output.name, " ", output.shape, ", came out", output.differentiated ? "" : ", a constant", "\n") +
           rows_text(output);
  if (!trace.forward_kernels.empty()) out += wrapped("  kernels:", trace.forward_kernels);
  out += wrapped("  on the tape:", trace.operations);
  std::vector<std::string> kept;
  for (const KeptTensor& one : trace.kept)
    kept.push_back(text(one.operation, " ", one.name, " ", one.shape, " ", one.bytes, " B"));
  return out + (kept.empty() ? "  kept for backward: nothing\n" : wrapped("  kept for backward:", kept));
}

std::string backward_text(const OpTrace& trace) {
  std::string out = "\nbackward\n";
  for (const TracedTensor& cotangent : trace.cotangents)
    out += text("  d", cotangent.name, " ", cotangent.shape, ", came in\n") + rows_text(cotangent);
  bool twice = false;
  for (const TracedGradient& gradient : trace.gradients) {
    out += wrapped(text("  d", gradient.tensor.name, " ", gradient.tensor.shape, ","), write_texts(gradient.writes)) +
           rows_text(gradient.tensor);
    twice = twice || !gradient.writes_twice.empty();
  }
  if (!trace.backward_kernels.empty()) out += wrapped("  kernels:", trace.backward_kernels);
  if (!twice) return out + "  it consumes an input: no tape has it twice\n";
  out += "\nbackward, with the operation twice on the tape\n";
  for (const TracedGradient& gradient : trace.gradients)
    out += wrapped(text("  d", gradient.tensor.name, ","), write_texts(gradient.writes_twice));
  return out;
}

std::string place_text(const Shape& shape, std::int64_t element) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank(); axis-- > 0; element /= shape[axis])
    place[static_cast<std::size_t>(axis)] = element % shape[axis];
  return fmt::format("[{}]", fmt::join(place, ", "));
}

std::string relative_text(double relative) {
  return relative < kIndistinguishable ? "< 1e-8" : fmt::format("{:.0e}", relative);
}

std::string comparison_text(const OpTrace& trace) {
  std::string out =
      "\nderivatives beside differences (f(x + h) - f(x - h)) / 2h, f being\n"
      "the sum of what came out times what came in, h = 1e-5\n";
  out += fmt::format("  {:<28}{:>14}{:>14}{:>12}\n", "", "backward", "difference", "relative");
  for (const TracedGradient& gradient : trace.gradients) {
    const std::size_t shown = std::min(gradient.elements.size(), kMostElements);
    for (std::size_t i = 0; i < shown; ++i) {
      const CheckedElement& one = gradient.elements[i];
      out += fmt::format("  {:<28}{:>14.6f}{:>14.6f}{:>12}\n",
                         text("d", gradient.tensor.name, " ", place_text(gradient.tensor.shape, one.element)),
                         rounded(one.analytic, 1e-6), rounded(one.numeric, 1e-6), relative_text(one.relative));
    }
    if (shown < gradient.elements.size())
      out += fmt::format("  d{} and {} more\n", gradient.tensor.name, gradient.elements.size() - shown);
  }
  return out + fmt::format("  the worst of {}: {}\n", trace.report.checked, relative_text(trace.report.worst_relative));
}

}  // namespace

std::string trace_text(const OpExample& example, Device device, const OpTrace& trace) {
  return text(example.name, ", f64 on ", device, "\n  ", example.formula, "\n  autograd/functions/", example.source,
              ".cpp\n\n", forward_text(trace), backward_text(trace), comparison_text(trace));
}

}  // namespace engram::tour
