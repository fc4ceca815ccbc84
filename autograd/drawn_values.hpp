#pragma once
/// Start values of a large parameter, piece by piece: it may fill most of the memory, or be larger, and drawing is
/// slow.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "autograd/initializer.hpp"
#include "core/dtype.hpp"
#include "core/rules/table_columns.hpp"

namespace engram {

/// Calls `take` with pieces of all `count` numbers as Initializer::fill draws them, in their order, the first being
/// number `first` of those that are held: of every row of the parameter, `columns`. `threads` pieces are drawn side by
/// side; `take` runs on the calling thread. Whatever `take` throws goes on to the caller.
void draw_values(const Initializer& initializer, DType dtype, std::int64_t count, const TableColumns& columns,
                 std::uint64_t seed, std::string_view name, int threads,
                 const std::function<void(std::int64_t first, std::span<const std::byte> values)>& take);

}  // namespace engram
