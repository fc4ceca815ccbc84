#pragma once

#include <string_view>

#include "core/step.hpp"

namespace engram {

/// In builds without NDEBUG: throws Error unless every one of `ids` (i32 or i64, any shape) is in [0, below). Release
/// builds do not look, because reading the ids would stop the device.
void check_ids(std::string_view op, std::string_view what, Step& step, const Tensor& ids, std::int64_t below);

/// Whether this build is one that looks.
bool ids_are_checked();

/// Looks at ids of rows of a table (i64) in every build, because reading a row costs far more than looking at its id,
/// and a wrong one would be written to. A device that works behind the host looks itself, in release builds: there a
/// wrong id becomes 0, and Step::wrong_ids() has the error.
void check_row_ids(std::string_view op, std::string_view what, Step& step, const Tensor& ids, std::int64_t below);

}  // namespace engram
