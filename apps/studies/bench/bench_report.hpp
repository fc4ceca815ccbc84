#pragma once
/// The results of `engram bench` as text for people and as JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/studies/bench/inference_bench.hpp"
#include "apps/studies/bench/machine_limits.hpp"
#include "apps/studies/bench/training_bench.hpp"

namespace engram {

std::string table_of(const MachineLimits& limits);
nlohmann::json json_of(const MachineLimits& limits);

std::string table_of(const BenchCase& bench, const BenchResult& result, const MachineLimits& limits);
nlohmann::json json_of(const BenchCase& bench, const BenchResult& result, const MachineLimits& limits);

std::string table_of(const BenchCase& bench, const InferenceResult& result);
nlohmann::json json_of(const BenchCase& bench, const InferenceResult& result);

/// How much ragged spans save: every head at the longest span against spans that differ. Ratios of times, and of the
/// formulas' FLOPs; above 1 when ragged spans are faster.
struct SpanComparison {
  double context_measured, context_formula;      ///< attention to the context, projecting the past included
  double attention_measured, attention_formula;  ///< the same kernels with the persistent slots, which no span shortens
  double step_measured, step_formula;            ///< the whole step
};
struct SpanRuns {
  const BenchResult &full, &ragged;                  ///< of the model
  const BenchResult &full_context, &ragged_context;  ///< of the model without persistent slots
};
SpanComparison compare_spans(const SpanRuns& runs);
std::string table_of(const SpanComparison& comparison);
nlohmann::json json_of(const SpanComparison& comparison);

}  // namespace engram
