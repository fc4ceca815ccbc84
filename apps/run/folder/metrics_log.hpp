#pragma once
/// metrics.jsonl of a run: one JSON object per line, only ever appended to. Each line goes to the system in one piece,
/// so a killed process leaves whole lines and at most one torn one at the end, which the next run cuts off.
///
/// A run that goes on from a checkpoint first writes {"event": "resume", "step": N}: lines above it whose step is
/// greater than N are of the part that was lost, and repeated below. Nothing else is ever taken back.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace engram {

class MetricsLog {
 public:
  /// Opens or creates the file and removes a torn last line. Throws FileError.
  explicit MetricsLog(std::filesystem::path path);
  ~MetricsLog();
  MetricsLog(const MetricsLog&) = delete;
  MetricsLog& operator=(const MetricsLog&) = delete;

  /// What is no UTF-8 in texts becomes U+FFFD. Throws FileError when it cannot be written, on a full disk for example.
  void append(const nlohmann::json& object);
  /// All lines are on the disk afterwards. Throws FileError.
  void flush();

 private:
  void cut_torn_line();
  [[noreturn]] void fail(const char* action, int error) const;

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace engram
