#include "apps/training/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "apps/training/loss_report.hpp"

namespace engram {
namespace {

std::string clock_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::clamp(seconds, 0.0, 3.6e8));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

void write(std::string_view bytes) { std::fwrite(bytes.data(), 1, bytes.size(), stderr); }

}  // namespace

std::string progress_text(const ProgressLine& line) {
  return fmt::format("step {}/{} loss {:.4f} {} lr {:.2e} tokens/s {:.0f}{} left {}", line.step, line.steps, line.loss,
                     loss_text(line.kind, {.all = line.loss, .no_eol = {}}), line.rate, line.tokens_per_second,
                     line.mean_span ? fmt::format(" span {:.1f}", *line.mean_span) : "", clock_text(line.seconds_left));
}

std::string evaluation_text(std::int64_t scored, std::int64_t all, double seconds) {
  const double rate = static_cast<double>(scored) / std::max(seconds, 1e-9);
  return fmt::format("scored {} of {} tokens, {:.0f}/s, left {}", scored, all, rate,
                     clock_text(static_cast<double>(all - scored) / std::max(rate, 1e-9)));
}

Progress::Progress() : terminal_(::isatty(STDERR_FILENO) == 1) {}
Progress::~Progress() { clear(); }

bool Progress::wants(bool report) const {
  if (!terminal_) return report;
  return std::chrono::steady_clock::now() - shown_ >= std::chrono::milliseconds(200);
}

void Progress::show(const ProgressLine& line) { show(progress_text(line)); }

void Progress::show(std::string shown) {
  shown_ = std::chrono::steady_clock::now();
  if (!terminal_) {
    write(shown + "\n");
    return;
  }
  const std::size_t length = shown.size();
  // Blanks over what is left of a longer line before.
  if (length < width_) shown.append(width_ - length, ' ');
  width_ = length;
  write("\r" + shown);
}

void Progress::note(std::string_view message) {
  clear();
  write(std::string(message) + "\n");
}

void Progress::clear() {
  if (width_ > 0) write("\r" + std::string(width_, ' ') + "\r");
  width_ = 0;
}

void EvaluationProgress::show(std::int64_t scored, std::int64_t all) {
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start_;
  if (taken >= std::chrono::seconds(1) && line_.wants(false)) line_.show(evaluation_text(scored, all, taken.count()));
}

}  // namespace engram
