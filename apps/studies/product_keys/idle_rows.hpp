#pragma once
/// For how long training has left rows of a table alone: rows that nothing reads any more are memory that does nothing.
/// [product-key 8].

#include <cstdint>
#include <span>
#include <vector>

namespace engram {

struct IdleRows {
  struct Longer {
    std::int64_t steps = 0;  ///< S
    std::int64_t rows = 0;   ///< that were last used more than S steps ago, or never
  };
  std::int64_t all = 0;
  std::int64_t never = 0;      ///< rows that no step used
  std::vector<Longer> longer;  ///< by 10, 100, 1000, .. steps, as far as there are fewer than `step`
};

/// last_use: the step, counted from 1, that used a row last, 0 for none; `step` steps are done. Those that never were
/// used have been left alone for all of them.
IdleRows idle_rows(std::span<const std::int32_t> last_use, std::int64_t step);

}  // namespace engram
