#pragma once
/// A prepared text and small runs over it, for tests of training and evaluation.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/run/training/training_run.hpp"
#include "nn/checkpoint.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness {

/// Words of few letters in lines, the same on every machine.
inline std::string small_text(std::int64_t length, std::uint64_t seed = 1) {
  reference::RandomArrays random(seed);
  const char* const words[] = {"an", "age", "ago", "bee", "big", "bread", "dear", "edge", "fire", "go"};
  std::string text;
  while (static_cast<std::int64_t>(text.size()) < length) {
    text += words[random.below(10)];
    text += random.below(8) == 0 ? '\n' : ' ';
  }
  return text;
}

/// The same text with every character as a word, a space being "_": as much to learn as there is in its characters.
inline std::string spelled(const std::string& text) {
  std::string words;
  for (const char byte : text) words += byte == '\n' ? "\n" : byte == ' ' ? "_ " : std::string(1, byte) + " ";
  return words;
}

/// A folder with a data set `data` of that many characters in all, or of words that spell them.
struct RunFolder : TemporaryFolder {
  explicit RunFolder(std::int64_t characters = 6000, std::uint64_t seed = 1,
                     data::TokenKind kind = data::TokenKind::character) {
    const std::string text = small_text(characters, seed);
    data::PrepareOptions options;
    options.kind = kind;
    options.text = put_file(*this / "text", kind == data::TokenKind::word ? spelled(text) : text);
    options.out = *this / "data";
    data::prepare(options);
  }
  std::filesystem::path data() const { return *this / "data"; }
};

/// A model of a few thousand parameters; every kind of state a run has is in use.
inline std::string small_config() {
  return R"([model]
layers = 2
width = 16
heads = 2
slots = 5
max_span = 48
ramp = 8
dropout = 0.2
embedding_dropout = 0.1
[optimizer]
kind = "adagrad"
clip = 0.5
[schedule]
rate = 0.07
warmup = 4
steps = 24
[training]
batch = 4
block = 40
split = 2
span_loss = 1e-4
report_every = 5
validate_every = 7
validate_blocks = 2
checkpoint_every = 10
seed = 11
)";
}

inline TrainingRunOptions run_options(const RunFolder& folder, const std::string& out) {
  TrainingRunOptions options;
  options.config = put_file(folder / "config.toml", small_config());
  options.data = folder.data();
  options.out = folder / out;
  options.threads = 1;
  return options;
}

/// The bytes of a run's newest checkpoint: what must be equal of a run that was stopped and one that was not.
inline std::string newest_checkpoint(const TrainingRunOptions& options) {
  return get_file(checkpoint_path(options.out, CheckpointKind::newest));
}

inline std::function<bool()> never() {
  return [] { return false; };
}
/// Says stop after that many steps.
inline std::function<bool()> after_steps(int steps) {
  return [steps, asked = 0]() mutable { return ++asked >= steps; };
}

}  // namespace engram::harness
