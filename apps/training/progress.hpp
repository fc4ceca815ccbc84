#pragma once
/// What a person sees of a training run, on stderr: on a terminal one line that is written over and over, in a file or
/// pipe one line per report. Other lines go through here too, so that they do not run into the progress line.

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

class Progress {
 public:
  Progress();
  ~Progress();

  /// Whether a line would be shown now: on a terminal some times a second, else at reports only.
  bool wants(bool report) const;
  void show(const ProgressLine& line);
  /// A line that stays.
  void note(std::string_view message);

 private:
  void clear();

  bool terminal_;
  std::size_t width_ = 0;  // of the line that stands on the terminal; 0: none
  std::chrono::steady_clock::time_point shown_{};
};

}  // namespace engram
