#pragma once
/// A trained run in a program of one's own: it is opened, asked for losses, for text and for its tensors. The results
/// are those of `engram evaluate --exact` and `engram generate`.

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/generation/token_sampler.hpp"
#include "core/backend.hpp"
#include "core/device.hpp"
#include "core/dtype.hpp"
#include "core/tensor.hpp"
#include "nn/checkpoint.hpp"

namespace engram {

/// How a run is opened.
struct RunOptions {
  CheckpointKind checkpoint = CheckpointKind::newest;  ///< which of a run's two
  Device device = {};                                  ///< that computes
  DType dtype = DType::f32;                            ///< of the parameters and of what is computed: f32 or f64
  int threads = 0;                                     ///< of the host; 0: as many as there are
  /// Words of a text that the model does not know become its word for unknown ones, where it has one; else they are
  /// errors.
  bool unknown_words = false;
};

/// What a model makes of a text.
struct Score {
  double nll = 0;           ///< -ln p added up over the scored tokens, nats
  std::int64_t scored = 0;  ///< tokens: all but the first, which nothing comes before

  double perplexity() const { return std::exp(nll / static_cast<double>(scored)); }    ///< of tokens
  double bits() const { return nll / (static_cast<double>(scored) * std::log(2.0)); }  ///< per token
};

/// How much is written, and how each token is chosen.
struct GenerateOptions {
  std::int64_t length = 400;  ///< tokens, from 0 on
  SamplingOptions sampling{};
};

/// Calls must not overlap; several runs are independent of each other. Every function may throw OutOfMemory and
/// NotFiniteError beside what it names.
class Run {
 public:
  /// Gets text as soon as it is complete: pieces of any length.
  using Show = std::function<void(std::string_view piece)>;

  /// `run_or_checkpoint`: a run's folder, or a file of safetensors with Engram's metadata. Throws FileError for what
  /// cannot be read, NotAvailable and DeviceError for a device that is not there, UsageError for options that the model
  /// does not go with.
  static Run open(const std::filesystem::path& run_or_checkpoint, const RunOptions& options = {});
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

  const std::filesystem::path& checkpoint() const;  ///< the file
  std::int64_t step() const;                        ///< updates that its weights have seen; 0: the file does not say
  std::int64_t vocabulary_size() const;             ///< V

  /// The ids, each in [0, V), of a text as the model reads it. Throws UsageError naming what it does not know.
  std::vector<std::int32_t> tokens(const std::string& text) const;
  /// The text of tokens. Throws UsageError for an id outside [0, V).
  std::string text(std::span<const std::int32_t> tokens) const;

  /// The loss of every token but the first, each given all before it, as far back as the model sees. Throws UsageError
  /// for less than two tokens and for ids outside [0, V).
  Score score(std::span<const std::int32_t> tokens);
  /// That of tokens(text).
  Score score(const std::string& text);

  /// What the model writes after `prompt`, which is not repeated; an empty one is the start of a line. The same seed
  /// writes the same text. Throws UsageError for a prompt that tokens() refuses, for an empty one where the model knows
  /// no line ends, and for options out of range.
  std::string generate(const std::string& prompt, const GenerateOptions& options = {});
  /// The same, shown while it is written.
  void generate(const std::string& prompt, const GenerateOptions& options, const Show& show);

  /// Names of all parameters and buffers, sorted.
  std::vector<std::string> tensor_names() const;
  /// A parameter or buffer, on the device; it shares the model's memory, and must not outlive the run. Throws
  /// UsageError for a name that it has not, Error for a table that stays in a mapped file.
  Tensor tensor(std::string_view name) const;
  /// The device: what host_copy() and host_doubles() read a tensor by.
  Backend& backend();

 private:
  struct Opened;
  explicit Run(std::unique_ptr<Opened> opened);

  std::unique_ptr<Opened> opened_;
};

}  // namespace engram
