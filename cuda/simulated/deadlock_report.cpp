#include "cuda/simulated/deadlock_report.hpp"

#include <vector>

#include "core/error.hpp"
#include "cuda/simulated/warpgroup.hpp"

namespace engram::simulated {
namespace {

/// "3", or "3-7".
void add_run(std::string& list, int first, int last) {
  if (!list.empty()) list += ", ";
  list += std::to_string(first);
  if (last > first) list += "-" + std::to_string(last);
}

/// The numbers of the given bits or threads as runs.
template <class Contains>
std::string runs(int count, Contains contains) {
  std::string list;
  for (int first = 0; first < count; ++first) {
    if (!contains(first)) continue;
    int last = first;
    while (last + 1 < count && contains(last + 1)) ++last;
    add_run(list, first, last);
    first = last;
  }
  return list;
}

bool wait_together(const Thread& a, const Thread& b) {
  if (a.state != b.state || !(a.site == b.site)) return false;
  if (a.state == Thread::State::at_warpgroup) return a.number / Warpgroup::kThreads == b.number / Warpgroup::kThreads;
  return a.state == Thread::State::at_barrier ||
         (a.meeting == b.meeting && a.number / kWarpSize == b.number / kWarpSize);
}

}  // namespace

std::string deadlock_report(const std::deque<Thread>& threads, int count) {
  const auto thread = [&threads](int number) -> const Thread& { return threads[static_cast<std::size_t>(number)]; };
  int exited = 0;
  for (int i = 0; i < count; ++i) exited += thread(i).state == Thread::State::exited;
  std::string report = text("threads must not wait for each other for ever, got a block of ", count,
                            " threads of which ", exited, " have exited and all others wait:");
  std::vector<bool> told(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const Thread& first = thread(i);
    if (first.state == Thread::State::exited || told[static_cast<std::size_t>(i)]) continue;
    const auto same = [&](int other) {
      return thread(other).state != Thread::State::exited && wait_together(first, thread(other));
    };
    for (int other = i; other < count; ++other)
      if (same(other)) told[static_cast<std::size_t>(other)] = true;
    report += text("\n  at ", first.site.text(), ": threads ", runs(count, same));
    if (first.state != Thread::State::at_collective) continue;
    const std::uint32_t absent = first.mask & ~first.meeting->arrived;
    report += text(", mask ", mask_text(first.mask), ", for lanes ",
                   runs(kWarpSize, [absent](int lane) { return (absent >> lane & 1u) != 0; }));
  }
  return report;
}

}  // namespace engram::simulated
