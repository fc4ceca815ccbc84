#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "apps/command_line/command.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/terminal/work_progress.hpp"

namespace engram {

/// What `engram attention` has for the Transformer-XL family; what reads splits is the recurrent one's too.
struct AttentionDistancesArguments {
  std::string data, split = "valid", term;
  std::int64_t memory = 0, clamp = 0, tokens = 0;
  bool same_length = false;

  /// Adds them to the command, which must outlive this. Returns --data.
  Option* add_to(Command& command);
  /// What was asked for that differs from training.
  ContextOptions context() const;
  /// Throws UsageError naming an option that was given, for a model of the family `other`, which has none of them;
  /// `reads_splits`: but --data, --split and --tokens, as the family recurrent.
  void refuse_given(std::string_view other, bool reads_splits) const;

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
void show_attention_distances(OpenedModel& opened, const AttentionDistancesArguments& arguments,
                              std::span<const std::int32_t> text_tokens, const AttentionDistancesFiles& files,
                              WorkProgress& progress);

}  // namespace engram
