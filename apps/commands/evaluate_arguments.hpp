#pragma once

#include <cstdint>
#include <string>

#include "apps/command_line/command.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"

namespace engram {

/// What `engram evaluate` takes.
struct EvaluateArguments {
  ModelArguments model;
  ReportOutput output;
  SplitEvaluationOptions way;
  std::string data, split = "valid", per_token;

  /// Adds all options to the command, which must outlive this.
  void add_to(Command& command);
  /// Throws UsageError for options that exclude each other.
  void check() const;
  /// check_output_file() of the files: for the process that writes them.
  void check_files() const;
  /// All that results depend on, but for the model and the data: what ranks must have been told alike.
  std::string all_told() const;
  /// What was asked for that differs from training.
  ContextOptions context() const;

 private:
  const Command* command_ = nullptr;
  std::string same_length_, carry_;
  std::int64_t memory_ = 0, clamp_ = 0;
};

}  // namespace engram
