#include "apps/run/config/section_keys.hpp"

namespace engram {

void add_schedule_keys(std::vector<ConfigKey>& keys) {
  const auto schedule = [&keys](auto member, std::string_view name, std::string_view meaning) {
    keys.push_back(make_key(
        "schedule", [](auto& config) -> auto& { return config.schedule; }, member, name, ConfigKey::OnResume::change,
        meaning));
  };
  schedule(&Schedule::rate, "rate", "highest learning rate");
  schedule(&Schedule::warmup, "warmup", "steps over which the rate rises linearly");
  schedule(&Schedule::decay, "decay", "how the rate falls after the warm-up");
  schedule(&Schedule::clock, "clock", "time of an update");
  schedule(&Schedule::final_share, "final_share", "share of the rate that a decay ends at");
  schedule(&Schedule::steps, "steps", "steps of the run before fine-tuning");
  schedule(&Schedule::finetune, "finetune", "begins after schedule.steps, or on a plateau of validation");
  schedule(&Schedule::finetune_share, "finetune_share", "share of the rate in fine-tuning");
  schedule(&Schedule::plateau_validations, "plateau_validations", "finetune plateau: validations without improvement");
  schedule(&Schedule::plateau_factor, "plateau_factor", "decay plateau: what the rate is multiplied by");
  schedule(&Schedule::plateau_patience, "plateau_patience", "decay plateau: validations that may fail before that");
  schedule(&Schedule::plateau_margin, "plateau_margin", "finetune plateau: bits per token, less is no improvement");
}

void add_training_keys(std::vector<ConfigKey>& keys, ModelFamily family) {
  const auto training = [&keys](auto member, std::string_view name, std::string_view meaning) {
    keys.push_back(make_key(
        "training", [](auto& config) -> auto& { return config.training; }, member, name, ConfigKey::OnResume::change,
        meaning));
  };
  training(&TrainingOptions::batch, "batch", "streams of text read side by side");
  training(&TrainingOptions::block, "block", "tokens of each stream per step");
  if (family == ModelFamily::transformer_xl) {
    training(&TrainingOptions::extension, "extension", "tokens read again before each block, without a loss");
    training(&TrainingOptions::drawn_lengths, "drawn_lengths", "lengths of blocks vary around block");
    training(&TrainingOptions::latest_half, "latest_half", "only the latest half of a block has a loss");
  }
  if (family == ModelFamily::product_key)
    training(&TrainingOptions::shuffled_windows, "shuffled_windows",
             "blocks are drawn from all of the text in a random order, not read along streams");
  if (family == ModelFamily::recurrent)
    training(&TrainingOptions::loss_scale, "loss_scale",
             "gradients are of the mean over a block, or of its sum over time");
  training(&TrainingOptions::split, "split", "pieces that a batch is computed in, to save memory; must divide batch");
  training(&TrainingOptions::products, "products", "operands of matrix products; all else stays f32");
  training(&TrainingOptions::activations, "activations",
           "what is stored between parameters and losses (docs/reference/numerics.md); on a card bf16 unless given");
  if (family == ModelFamily::all_attention)
    training(&TrainingOptions::span_loss, "span_loss", "weight of the mean span in the loss, per position");
  training(&TrainingOptions::finetune_steps, "finetune_steps", "steps of fine-tuning, after the others");
  training(&TrainingOptions::report_every, "report_every", "steps between reports");
  training(&TrainingOptions::validate_every, "validate_every", "steps between short validations");
  training(&TrainingOptions::validate_blocks, "validate_blocks", "blocks of a short validation at most");
  training(&TrainingOptions::validate_as_trained, "validate_as_trained",
           "short validations compute with products and activations too, not in f32; on a card true unless given");
  training(&TrainingOptions::checkpoint_every, "checkpoint_every", "steps between checkpoints");
  training(&TrainingOptions::sample_every, "sample_every", "steps between samples of what the model writes; 0: none");
  training(&TrainingOptions::sample_prompt, "sample_prompt", "what a sample begins with; empty: the start of a line");
  training(&TrainingOptions::weight_average, "weight_average",
           "once validation stops improving, evaluate with the mean of the weights since then");
  keys.push_back(make_key(
      "training", [](auto& config) -> auto& { return config.training; }, &TrainingOptions::freeze, "freeze",
      ConfigKey::OnResume::keep, "parameters that are not trained, by their names with * and ?"));
  training(&TrainingOptions::gradient_report, "gradient_report",
           "report every tensor's gradient, for engram gradients");
  training(&TrainingOptions::seed, "seed", "of weights, dropout and reading");
}

}  // namespace engram
