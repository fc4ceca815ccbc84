#pragma once
/// metrics.jsonl of a run as columns, read while the run goes on: what was appended since the last time is added, what
/// a resumed run took back is taken out.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/run/folder/report_lines.hpp"
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
  double loss = 0;
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

  /// Reads what was appended; from the start, when the file is shorter than it was or another one. Whether anything
  /// changed. What cannot be read is a problem(), nothing is thrown.
  bool update();

  const std::vector<TrainReport>& train() const { return reports_.train; }
  const std::vector<ValidReport>& valid() const { return reports_.valid; }
  const std::vector<SpanReportLine>& spans() const { return reports_.spans; }
  const std::vector<WrittenSample>& samples() const { return reports_.samples; }
  const std::vector<RunMark>& marks() const { return reports_.marks; }
  /// The newest report of gradients; null: none, or a resumed run took it back.
  const nlohmann::json& gradients() const { return reports_.gradients; }
  /// "bpc", "ppl" or "ppl_bpe", as score_name() has it; empty: no report yet.
  const std::string& score() const { return reports_.score; }
  /// Of the newest line; 0 before the first.
  std::int64_t step() const { return step_; }
  /// A line for people: what of the file is not shown and why; empty: nothing.
  std::string problem() const { return problem_.empty() ? left_out_.words(file_) : problem_; }

 private:
  /// What was read, of a run that begins anew in its file or of another file.
  struct Reports {
    std::vector<TrainReport> train;
    std::vector<ValidReport> valid;
    std::vector<SpanReportLine> spans;
    std::vector<WrittenSample> samples;
    std::vector<RunMark> marks;
    nlohmann::json gradients;
    std::int64_t gradients_step = 0;
    std::string score;
  };
  /// Which file was read, and how far.
  struct Place {
    dev_t device = 0;
    ino_t inode = 0;
    std::string beginning;   ///< its first bytes: a file that is copied over another one keeps its inode
    std::uint64_t read = 0;  ///< bytes of whole lines that were taken
    std::int64_t line = 0;
    bool is_skipping = false;  ///< the rest of a line that is too long
  };

  void clear();
  bool is_another(const Place& now) const;
  bool read_lines(std::istream& in);
  void take_line(std::string_view line);
  void take(const nlohmann::json& line);
  void take_train(const nlohmann::json& line);
  void take_valid(const nlohmann::json& line);
  /// Takes out what lies behind the step that a run goes on from.
  void go_back(std::int64_t step);

  std::filesystem::path file_;
  Place place_;
  Reports reports_;
  std::int64_t step_ = 0;
  LeftOutLines left_out_;
  std::string problem_;  // of the file itself
};

}  // namespace engram
