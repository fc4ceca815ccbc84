#pragma once
/// metrics.jsonl of a run as columns, read while the run goes on: what was appended since the last time is added, what
/// a resumed run took back is taken out.

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/files/json.hpp"

namespace engram {

/// What is no number in the file, such as a loss that was none, is a NaN here.
struct TrainReport {
  std::int64_t step = 0;
  double seconds = 0, loss = 0;  ///< of training so far; nats a token
  double rate = 0, gradient_norm = 0, above_clip = 0, tokens_per_second = 0, mean_span = 0;
};
struct ValidReport {
  std::int64_t step = 0;
  double seconds = 0, loss = 0;
  bool best = false;
  std::vector<std::int64_t> memory_layers;  ///< the first being 1; empty: no memories
  std::vector<double> memory_usage, memory_kl;
};
struct SpanReportLine {
  std::int64_t step = 0;
  std::vector<std::vector<double>> heads;  ///< positions, by layer
};
/// What a run wrote while it was trained.
struct WrittenSample {
  std::int64_t step = 0;
  std::string prompt, text;
};
/// A line that is no report: start, resume, end, diverged, finetune ...
struct RunMark {
  std::string event;
  std::int64_t step = 0;
  nlohmann::json line;
};

class RunLog {
 public:
  explicit RunLog(std::filesystem::path file) : file_(std::move(file)) {}

  /// Reads what was appended; from the start, when the file is shorter than it was. Whether anything changed. What
  /// cannot be read is a problem(), nothing is thrown.
  bool update();

  const std::vector<TrainReport>& train() const { return train_; }
  const std::vector<ValidReport>& valid() const { return valid_; }
  const std::vector<SpanReportLine>& spans() const { return spans_; }
  const std::vector<WrittenSample>& samples() const { return samples_; }
  const std::vector<RunMark>& marks() const { return marks_; }
  /// The newest report of gradients; null: none.
  const nlohmann::json& gradients() const { return gradients_; }
  /// "bpc", "ppl" or "ppl_bpe", as score_name() has it; empty: no report yet.
  const std::string& score() const { return score_; }
  /// Of the newest line; 0 before the first.
  std::int64_t step() const { return step_; }
  /// A line for people: what of the file is not shown and why; empty: nothing.
  const std::string& problem() const { return problem_; }

 private:
  void clear();
  void take_line(std::string_view line);
  void take(const nlohmann::json& line);
  void take_train(const nlohmann::json& line);
  void take_valid(const nlohmann::json& line);
  /// Takes out what lies behind the step that a run goes on from.
  void go_back(std::int64_t step);

  std::filesystem::path file_;
  std::uint64_t read_ = 0;  // bytes of whole lines that were taken
  std::int64_t line_ = 0, step_ = 0;
  std::vector<TrainReport> train_;
  std::vector<ValidReport> valid_;
  std::vector<SpanReportLine> spans_;
  std::vector<WrittenSample> samples_;
  std::vector<RunMark> marks_;
  nlohmann::json gradients_;
  std::string score_, problem_;
};

}  // namespace engram
