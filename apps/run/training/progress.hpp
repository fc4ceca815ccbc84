#pragma once
/// What a person sees of a training run, on stderr: on a terminal one line that is written over and over and fits it
/// (fitted_line.hpp), in a file or pipe one line per report.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/token_kind.hpp"
#include "apps/terminal/fitted_line.hpp"
#include "apps/terminal/signals.hpp"

namespace engram {

struct ProgressLine {
  std::int64_t step = 0, steps = 0;
  double loss = 0;  ///< nats per token
  double rate = 0;
  double tokens_per_second = 0;
  std::optional<double> mean_span;  ///< positions; none: the model has no spans
  double seconds_left = 0;          ///< validations and checkpoints with it, as often as they were so far
  data::TokenKind kind = data::TokenKind::character;
  std::optional<double> valid_loss = {};  ///< of the last validation, nats per token; in lines of terminals only
};
/// For characters `step 1200/60000 loss 1.0921 bpc 1.5756 lr 6.25e-04 tokens/s 81234 span 97.3 left 1:02:03`,
/// for words ppl instead of bpc: a report in a file.
std::string progress_text(const ProgressLine& line);
/// For a terminal, the most important first: step, time left, loss as people compare it, rate of tokens, loss of the
/// last validation, learning rate, mean span. Before the first step there is nothing but that. `run`: which of several
/// runs it is, "2/8", or empty.
std::string fitted_progress(const ProgressLine& line, const std::string& run, std::int64_t columns, bool colours);

class Progress {
 public:
  /// `run`: which of several runs it is, "2/8"; empty: there is one.
  explicit Progress(std::string run = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Whether a line would be shown now: on a terminal some times a second, else at reports only.
  bool wants(bool report);
  /// The line that wants() asked for.
  void show(const ProgressLine& line);
  /// A line that stays.
  void note(std::string_view message);

 private:
  std::string run_;
  bool over_and_over_ = false;  // as wants() found the terminal
  std::chrono::steady_clock::time_point shown_{};
  std::optional<TerminalLineSignals> signals_;
};

}  // namespace engram
