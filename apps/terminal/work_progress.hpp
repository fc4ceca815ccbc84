#pragma once
/// How far the work of a command is, on a terminal: one line that is written over and over, after the first second, by
/// a thread of its own, so that it goes on where nothing is told for a while. Nothing in a file or pipe.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "apps/terminal/signals.hpp"

namespace engram {

/// Called with what has been done so far, of all that is to be done; 0: that is not known.
using WorkWatch = std::function<void(std::int64_t done, std::int64_t all)>;

/// What a line tells of a piece of work.
struct WorkState {
  std::string what;                ///< "scored", "reading 'text'"
  std::string unit;                ///< what is counted: "tokens"; of "bytes" millions are shown
  std::int64_t done = 0, all = 0;  ///< nothing done: no numbers are known; all 0: how many there are is not
  double per_second = 0;           ///< 0: not known yet
  double seconds = 0;              ///< since it began
};
/// `scored 1200 of 15000 tokens left 0:17 tokens/s 800`, and without numbers `reading 'text' 0:05`, how long it has
/// taken: as much of that as fits.
std::string fitted_work(const WorkState& work, std::int64_t columns, bool colours);

class WorkProgress {
 public:
  /// `what` is being done first, and counted in `unit`. `delay`: until a line is shown, whatever is done then.
  explicit WorkProgress(std::string what, std::string unit = "",
                        std::chrono::milliseconds delay = std::chrono::seconds(1));
  ~WorkProgress();
  WorkProgress(const WorkProgress&) = delete;
  WorkProgress& operator=(const WorkProgress&) = delete;

  /// What is being done from now on; counts, in `unit`, begin anew.
  void begin(std::string what, std::string unit = "");
  void at(std::int64_t done, std::int64_t all);
  /// Calls at(); this object must outlive it.
  WorkWatch watch();
  /// Takes the line away for good, before results are printed.
  void end();

 private:
  using Clock = std::chrono::steady_clock;

  void show_until_ended(std::chrono::milliseconds delay);
  WorkState state() const;

  std::mutex mutex_;  // of what follows
  std::condition_variable changed_;
  bool ended_ = false, shown_ = false;
  WorkState work_;
  Clock::time_point begun_ = Clock::now();
  /// When something was told of it first, and how much was done then: from there on its rate is taken.
  std::optional<Clock::time_point> counted_from_;
  std::int64_t counted_ = 0;
  Clock::time_point told_;

  std::optional<TerminalLineSignals> signals_;
  std::thread thread_;  // only on a terminal
};

}  // namespace engram
