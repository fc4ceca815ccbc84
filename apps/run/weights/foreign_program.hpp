#pragma once
/// Which program's tensors a file has, told by their names: who names another one is told which it looks like.

#include <optional>
#include <string_view>

#include "apps/run/weights/foreign_weights.hpp"

namespace engram {

/// The programs as `engram import --from` calls them.
inline constexpr std::string_view kAdaptiveSpanProgram = "adaptive-span", kTransfoXlProgram = "transfo-xl",
                                  kTransformerXlProgram = "transformer-xl";

/// Nothing: the names are those of none of them.
std::optional<std::string_view> program_of(const ForeignWeights& weights);

/// Throws UsageError, naming the program that the names are of, unless they are those of `program` or of none.
/// transfo-xl and transformer-xl are read alike, and are one here.
void require_program(const ForeignWeights& weights, std::string_view program);

}  // namespace engram
