#include "apps/terminal/work_progress.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "apps/terminal/fitted_line.hpp"
#include "apps/terminal/terminal.hpp"
#include "core/held_signals.hpp"
#include "core/terminal_line.hpp"

namespace engram {
namespace {

constexpr std::chrono::milliseconds kBetween{200};

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

std::string fitted_work(const WorkState& work, std::int64_t columns, bool colours) {
  LineStyle style{.columns = columns, .colours = colours};
  if (work.done <= 0) return fitted_line(std::vector<LinePart>{{work.what, clock_text(work.seconds)}}, style);
  const bool bytes = work.unit == "bytes";
  const std::string unit = bytes ? "MB" : work.unit;
  const auto amount = [bytes](std::int64_t count) {
    return bytes ? fmt::format("{:.1f}", static_cast<double>(count) / 1e6) : std::to_string(count);
  };
  const bool known = work.all > 0;
  std::vector<LinePart> parts{
      {work.what, known ? amount(work.done) + " of " + amount(work.all) : amount(work.done), unit}};
  if (known && work.per_second > 0)
    parts.push_back({"left", clock_text(static_cast<double>(work.all - work.done) / work.per_second)});
  if (!known) parts.push_back({"taken", clock_text(work.seconds)});
  style.essential = parts.size();
  if (known) style.share = static_cast<double>(work.done) / static_cast<double>(work.all);
  if (work.per_second > 0)
    parts.push_back({unit + "/s", bytes                    ? fmt::format("{:.1f}", work.per_second / 1e6)
                                  : work.per_second >= 100 ? fmt::format("{:.0f}", work.per_second)
                                                           : fmt::format("{:.3g}", work.per_second)});
  return fitted_line(parts, style);
}

WorkProgress::WorkProgress(std::string what, std::string unit, std::chrono::milliseconds delay) {
  work_.what = std::move(what);
  work_.unit = std::move(unit);
  if (!is_line_terminal()) return;
  signals_.emplace();
  const HeldSignals held;  // the thread holds what this one does
  thread_ = std::thread([this, delay] { show_until_ended(delay); });
}

WorkProgress::~WorkProgress() { end(); }

void WorkProgress::begin(std::string what, std::string unit) {
  const std::lock_guard lock(mutex_);
  work_ = {.what = std::move(what), .unit = std::move(unit)};
  begun_ = Clock::now();
  counted_from_.reset();
}

void WorkProgress::at(std::int64_t done, std::int64_t all) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  work_.done = done;
  work_.all = all;
  told_ = Clock::now();
  if (counted_from_) return;
  counted_from_ = told_;
  counted_ = done;
}

WorkWatch WorkProgress::watch() {
  return [this](std::int64_t done, std::int64_t all) { at(done, all); };
}

void WorkProgress::end() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (shown_) take_terminal_line_away();
  signals_.reset();
}

WorkState WorkProgress::state() const {
  WorkState state = work_;
  state.seconds = seconds_between(begun_, Clock::now());
  if (counted_from_ && told_ > *counted_from_)
    state.per_second = static_cast<double>(work_.done - counted_) / seconds_between(*counted_from_, told_);
  return state;
}

void WorkProgress::show_until_ended(std::chrono::milliseconds delay) {
  std::unique_lock lock(mutex_);
  for (Clock::time_point next = Clock::now() + delay; !changed_.wait_until(lock, next, [this] { return ended_; });
       next = Clock::now() + kBetween) {
    if (!takes_lines()) continue;
    shown_ = true;
    show_terminal_line(fitted_work(state(), terminal_columns() - 1, shows_colours()));
  }
}

}  // namespace engram
