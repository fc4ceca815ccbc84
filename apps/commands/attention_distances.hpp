#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "apps/commands/command.hpp"
#include "apps/training/split_evaluation.hpp"
#include "apps/training/trained_model.hpp"

namespace engram {

/// What `engram attention` has for the Transformer-XL family alone.
struct AttentionDistancesArguments {
  std::string data, split = "valid", term;
  std::int64_t memory = 0, clamp = 0, tokens = 0;
  bool same_length = false;

  /// Adds them to the command, which must outlive this.
  void add_to(Command& command);
  /// What was asked for that differs from training.
  ContextOptions context() const;
  /// Throws UsageError naming an option of this family that was given, for a model of another one.
  void refuse_given() const;

 private:
  const Command* command_ = nullptr;
};

/// Where the results go; empty: nowhere.
struct AttentionDistancesFiles {
  std::string csv, svg;
  bool json = false;
};

/// Reads --data, or without it `text_tokens`, with the model, which must be of the family, made for studies
/// (DistanceStudy), and tells how far back each head looks.
void show_attention_distances(TrainedModel& trained, Runtime& runtime, const AttentionDistancesArguments& arguments,
                              std::span<const std::int32_t> text_tokens, const AttentionDistancesFiles& files);

}  // namespace engram
