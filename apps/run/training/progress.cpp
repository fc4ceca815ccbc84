#include "apps/run/training/progress.hpp"

#include <fmt/format.h>

#include <utility>

#include "apps/run/evaluation/loss_report.hpp"
#include "apps/terminal/terminal.hpp"
#include "core/log.hpp"
#include "core/terminal_line.hpp"

namespace engram {
namespace {

/// "bpc 1.5756" as a part.
LinePart loss_part(data::TokenKind kind, double nll) {
  const std::string loss = loss_text(kind, {.all = nll, .no_eol = {}});
  const std::size_t blank = loss.find(' ');
  return {loss.substr(0, blank), loss.substr(blank + 1)};
}

}  // namespace

std::string progress_text(const ProgressLine& line) {
  return fmt::format("step {}/{} loss {:.4f} {} lr {:.2e} tokens/s {:.0f}{} left {}", line.step, line.steps, line.loss,
                     loss_text(line.kind, {.all = line.loss, .no_eol = {}}), line.rate, line.tokens_per_second,
                     line.mean_span ? fmt::format(" span {:.1f}", *line.mean_span) : "", clock_text(line.seconds_left));
}

std::string fitted_progress(const ProgressLine& line, const std::string& run, std::int64_t columns, bool colours) {
  std::vector<LinePart> parts{{"step", fmt::format("{}/{}", line.step, line.steps)}};
  LineStyle style{.columns = columns, .colours = colours};
  if (line.tokens_per_second > 0) {
    parts.push_back({"left", clock_text(line.seconds_left)});
    parts.push_back(loss_part(line.kind, line.loss));
    style.essential = parts.size();
    style.share = static_cast<double>(line.step) / static_cast<double>(line.steps);
    parts.push_back({"tokens/s", fmt::format("{:.0f}", line.tokens_per_second)});
    if (line.valid_loss) parts.push_back({"valid", loss_part(line.kind, *line.valid_loss).value});
    parts.push_back({"lr", fmt::format("{:.2e}", line.rate)});
    if (line.mean_span) parts.push_back({"span", fmt::format("{:.1f}", *line.mean_span)});
  }
  if (!run.empty()) parts.insert(parts.begin() + static_cast<std::ptrdiff_t>(style.essential), {"run", run, "", true});
  return fitted_line(parts, style);
}

Progress::Progress(std::string run) : run_(std::move(run)) {
  if (is_line_terminal()) signals_.emplace();
}
Progress::~Progress() { take_terminal_line_away(); }

bool Progress::wants(bool report) {
  over_and_over_ = takes_lines();
  if (!over_and_over_) return report;
  return std::chrono::steady_clock::now() - shown_ >= std::chrono::milliseconds(200);
}

void Progress::show(const ProgressLine& line) {
  shown_ = std::chrono::steady_clock::now();
  if (over_and_over_)
    show_terminal_line(fitted_progress(line, run_, terminal_columns() - 1, shows_colours()));
  else
    note(progress_text(line));
}

void Progress::note(std::string_view message) { log_line(message); }

}  // namespace engram
