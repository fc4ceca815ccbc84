#pragma once
/// Results of runs as text, for ranks that train other runs of the same sweep.

#include <string>
#include <string_view>

#include "apps/studies/sweeps/sweep_result.hpp"

namespace engram {

/// All of it, every number exactly.
std::string text_of_result(const RunResult& result);
/// What text_of_result() wrote. Throws Error for other text.
RunResult result_of_text(std::string_view written);

}  // namespace engram
