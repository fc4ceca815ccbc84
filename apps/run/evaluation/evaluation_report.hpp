#pragma once
/// What `engram evaluate` says of a model on a split.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/evaluation/evaluator.hpp"
#include "apps/run/evaluation/loss_report.hpp"
#include "apps/run/evaluation/neural_cache.hpp"

namespace engram {

struct EvaluationReport {
  std::string checkpoint, split;
  std::string way;  ///< of evaluation: paper, exact, articles, sliding or windows
  std::int64_t step = 0, averaged_over = 0;
  std::int64_t tokens = 0;  ///< of the split
  int rows = 0;             ///< streams side by side
  int window = 0;           ///< of windows side by side, whose perplexity has a name of its own; 0: none
  data::TokenKind kind{};
  Evaluation result;
  MeanLoss loss;
  NeuralCacheOptions cache;
  std::optional<data::TextAmount> amount;  ///< of the split, where the data know it
  std::vector<std::uint64_t> mapped;       ///< bytes of the tables in mapped files

  /// Words of the text that are scored a second; none where the data do not know them.
  std::optional<double> words_per_second() const;
};

std::string table_of(const EvaluationReport& report);
nlohmann::json json_of(const EvaluationReport& report);

}  // namespace engram
