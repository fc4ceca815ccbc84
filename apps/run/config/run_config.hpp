#pragma once
/// Everything that defines a training run: the TOML file (run_config_file.hpp), as resolved. One key per member, in
/// four sections; the same struct is written into the run's folder and into every checkpoint.

#include <cstdint>
#include <string>
#include <vector>

#include "core/activation_precision.hpp"
#include "core/names.hpp"
#include "core/product_precision.hpp"
#include "nn/models/model_options.hpp"
#include "nn/optim/optimizer.hpp"
#include "nn/optim/schedule.hpp"

namespace engram {

/// What training follows the gradient of; reported losses are means in any case. Adam's steps differ by clipping alone.
enum class LossScale : std::uint8_t {
  mean,     ///< the mean loss of a token
  time_sum  ///< M times the mean: where all targets count, the sum over a block of the mean over streams, as programs
            ///< of the paper's time had it
};
constexpr auto names_of(LossScale) {
  return std::to_array<Named<LossScale>>({{LossScale::mean, "mean"}, {LossScale::time_sum, "time_sum"}});
}

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
  bool validate_as_trained = false;      ///< short validations compute with `products` and `activations`, not in f32
  std::int64_t checkpoint_every = 1000;  ///< steps between checkpoints
  std::int64_t sample_every = 0;         ///< steps between samples of what the model writes; 0: none
  std::string sample_prompt;             ///< what a sample begins with; empty: the start of a line
  bool weight_average = false;           ///< from when validation stops improving, models are judged by mean weights
  std::vector<std::string> freeze;       ///< names, with * and ?, of parameters that stay as they are
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

}  // namespace engram
