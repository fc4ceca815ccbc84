#pragma once
/// What a person sees of a training run or a long evaluation, on stderr: on a terminal one line that is written over
/// and over, in a file or pipe one line per report. Other lines go through here too, so that they do not run into the
/// progress line.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "apps/data/token_kind.hpp"

namespace engram {

struct ProgressLine {
  std::int64_t step = 0, steps = 0;
  double loss = 0;  ///< nats per token
  double rate = 0;
  double tokens_per_second = 0;
  std::optional<double> mean_span;  ///< positions; none: the model has no spans
  double seconds_left = 0;
  data::TokenKind kind = data::TokenKind::character;
};
/// For characters `step 1200/60000 loss 1.0921 bpc 1.5756 lr 6.25e-04 tokens/s 81234 span 97.3 left 1:02:03`,
/// for words ppl instead of bpc.
std::string progress_text(const ProgressLine& line);
/// `scored 1200 of 15000 tokens, 800/s, left 0:17`, of an evaluation that has taken so long.
std::string evaluation_text(std::int64_t scored, std::int64_t all, double seconds);

class Progress {
 public:
  Progress();
  ~Progress();

  /// Whether a line would be shown now: on a terminal some times a second, else at reports only.
  bool wants(bool report) const;
  void show(const ProgressLine& line);
  void show(std::string line);
  /// A line that stays.
  void note(std::string_view message);
  /// Takes the line away.
  void clear();

 private:
  bool terminal_;
  std::size_t width_ = 0;  // of the line that stands on the terminal; 0: none
  std::chrono::steady_clock::time_point shown_{};
};

/// The progress of an evaluation: a line on a terminal after the first second, nothing in a file or pipe.
class EvaluationProgress {
 public:
  /// How many of the targets that are to be scored have been.
  void show(std::int64_t scored, std::int64_t all);
  /// Takes the line away, before something else is printed.
  void end() { line_.clear(); }

 private:
  Progress line_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace engram
