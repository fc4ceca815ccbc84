#pragma once
/// Everything that defines a training run: the TOML file, as resolved. One key per member, in four sections; the same
/// struct is written into the run's folder and into every checkpoint.

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "nn/models/model_options.hpp"
#include "core/activation_precision.hpp"
#include "core/product_precision.hpp"
#include "nn/optim/optimizer.hpp"
#include "nn/optim/schedule.hpp"

namespace engram {

/// What training follows the gradient of; reported losses are means in any case. Adam's steps differ by clipping alone.
enum class LossScale : std::uint8_t {
  mean,     ///< the mean loss of a token
  time_sum  ///< the sum over a block of the mean over streams, as programs of the paper's time had it
};

/// Section [training].
struct TrainingOptions {
  std::int64_t batch = 64;        ///< B, streams read side by side
  std::int64_t block = 512;       ///< M, tokens of each stream per step
  std::int64_t extension = 0;     ///< Transformer-XL: tokens read again before each block, as context without a loss
  bool drawn_lengths = false;     ///< Transformer-XL: blocks vary around `block`
  bool latest_half = false;       ///< Transformer-XL: only the latest half of a block has a loss
  bool shuffled_windows = false;  ///< product_key: blocks are drawn in a random order
  LossScale loss_scale = LossScale::mean;             ///< recurrent: what gradients are of
  std::int64_t split = 1;                             ///< pieces that a batch is computed in, one after the other
  ProductPrecision products = ProductPrecision::f32;  ///< how f32 products read their operands
  ActivationPrecision activations =
      ActivationPrecision::f32;          ///< bf16: mixed precision, on devices with kernels for it
  double span_loss = 0;                  ///< lambda, the weight of the mean span in the loss, per position
  std::int64_t finetune_steps = 0;       ///< steps of fine-tuning, at rate * schedule.finetune_share
  std::int64_t report_every = 100;       ///< steps between lines of metrics
  std::int64_t validate_every = 1000;    ///< steps between short validations
  std::int64_t validate_blocks = 100;    ///< blocks of one short validation
  std::int64_t checkpoint_every = 1000;  ///< steps between checkpoints
  bool weight_average = false;           ///< from when validation stops improving, models are judged by mean weights
  bool gradient_report = false;          ///< norms and clipping of every tensor, in the metrics
  std::uint64_t seed = 1;
};

struct RunConfig {
  ModelOptions model;          ///< section [model]; vocabulary 0: taken from the data
  OptimizerOptions optimizer;  ///< section [optimizer]
  Schedule schedule;           ///< section [schedule]
  TrainingOptions training;    ///< section [training]

  /// Steps of the whole run; fewer when fine-tuning begins on a plateau.
  std::int64_t total_steps() const { return schedule.steps + training.finetune_steps; }
  /// Throws UsageError naming the key and its value. The vocabulary may still be 0.
  void check() const;
};

/// Reads a TOML file and applies `overrides`, each `section.key=value`. An unknown or misspelt key, a wrong type or an
/// unreadable file is one UsageError or FileError that names it, with the nearest valid key; so are keys without a
/// default that are not given, all in one. Calls check(), and says which of the file and the overrides it refuses.
RunConfig load_run_config(const std::filesystem::path& file, const std::vector<std::string>& overrides = {});
/// The same from text, `source` being named in errors: a config.toml inside a checkpoint.
RunConfig parse_run_config(const std::string& toml, const std::string& source,
                           const std::vector<std::string>& overrides = {});
/// The same of a configuration of the model alone, as another program may write it: where [schedule] gives nothing, it
/// has some value for what only training needs and has no default.
RunConfig parse_model_config(const std::string& toml, const std::string& source);
/// The keys that they give, as "section.key", whatever their values. Throws UsageError as parse_run_config does for
/// what cannot be read, but not for keys and values that are wrong.
std::set<std::string> given_keys(const std::string& toml, const std::string& source,
                                 const std::vector<std::string>& overrides = {});
/// The inverse: every key with its value, in TOML that load_run_config reads back to an equal struct.
std::string to_toml(const RunConfig& config);

}  // namespace engram
