#pragma once
/// A sweep as its folder has it: runs.csv, and the configuration of every run.

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/studies/figures/run_settings.hpp"

namespace engram {

/// One run of a sweep.
struct SweptRun {
  std::string variant, folder, outcome;         ///< outcome: "done", or what else it came to
  std::map<std::string, std::string> settings;  ///< "model.slots" and its value, without quotes; empty: not known
  std::map<std::string, std::string> columns;   ///< of runs.csv, as written
};

class SweepFolder {
 public:
  /// Throws FileError where runs.csv cannot be read, UsageError for a folder without it or one that no sweep has
  /// written.
  explicit SweepFolder(std::filesystem::path folder);

  const std::filesystem::path& folder() const { return folder_; }
  const std::vector<SweptRun>& runs() const { return runs_; }
  /// The columns of runs.csv with numbers in them, in their order.
  const std::vector<std::string>& metrics() const { return metrics_; }
  bool is_metric(const std::string& name) const;
  /// Keys that have several values in the runs, but for training.seed; in the order of the configuration.
  const std::vector<std::string>& varying() const { return varying_; }
  /// The whole name of a key that any run has: "slots" is "model.slots" where one section alone has such a key. None
  /// where there is no such key.
  std::optional<std::string> key(const std::string& name) const;
  /// All keys there are.
  const std::vector<std::string>& keys() const { return keys_; }

  /// A run's number in a column; of several memories the mean. None where there is none.
  static std::optional<double> number(const SweptRun& run, const std::string& column);
  /// A run's value of a key; empty where its configuration has none.
  static std::string setting(const SweptRun& run, const std::string& key);

 private:
  void read_settings(SweptRun& run);
  void find_metrics(const std::vector<std::string>& names);
  void find_varying();

  std::filesystem::path folder_;
  std::vector<SweptRun> runs_;
  std::vector<std::string> metrics_, keys_, varying_;
};

}  // namespace engram
