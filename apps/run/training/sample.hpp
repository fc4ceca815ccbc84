#pragma once
/// What a model writes while it is trained: nothing of the training depends on it.

#include <cstdint>
#include <string>

#include "apps/run/training/session.hpp"

namespace engram {

struct Sample {
  /// How it is written: so many tokens, at this temperature.
  static constexpr std::int64_t kLength = 200;
  static constexpr double kTemperature = 0.8;

  std::string prompt;      ///< as the model reads it
  std::string text;        ///< what it wrote on; bytes that need not be UTF-8
  std::uint64_t seed = 0;  ///< of the choices, below 2^53: a number that every reader of JSON keeps
};

/// Throws UsageError where the model cannot begin a text with training.sample_prompt: a character or word that it does
/// not know, or no prompt and a model that knows no line end.
void check_sample_prompt(TrainingSession& session);

/// The model goes on with training.sample_prompt, being judged as in a validation. Depends on the weights,
/// training.seed and the step alone. Tables in the mode deferred are read as they are, as late as some of their rows
/// may be. Throws as check_sample_prompt, and NotFiniteError for weights that give no probabilities.
Sample write_sample(TrainingSession& session);

/// `step 2000 sample: And it came to pass / in the days`, in at most so many columns: line ends are slashes, other
/// control characters blanks, and what is no character U+FFFD.
std::string sample_line(std::int64_t step, const Sample& sample, std::int64_t columns);

}  // namespace engram
