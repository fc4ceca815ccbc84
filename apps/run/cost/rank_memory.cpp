#include "apps/run/cost/rank_memory.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>

#include "apps/run/cost/step_cost.hpp"
#include "apps/run/cost/table_cost.hpp"
#include "autograd/rank_exchange.hpp"
#include "nn/optim/shards.hpp"

namespace engram {
namespace {

constexpr std::int64_t kSumBytes = 8;  // norms are summed in double

std::int64_t most_at(std::int64_t a, std::int64_t times) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, times, &product) ? std::numeric_limits<std::int64_t>::max() : product;
}
std::int64_t most_of(std::initializer_list<std::int64_t> parts) {
  std::int64_t sum = 0;
  for (const std::int64_t part : parts)
    if (__builtin_add_overflow(sum, part, &sum)) return std::numeric_limits<std::int64_t>::max();
  return sum;
}

std::int64_t stored_bytes(const Parameter& parameter) {
  return most_at(parameter.shape().count(), static_cast<std::int64_t>(size_of(parameter.stored_dtype(DType::f32))));
}

/// Whether steps read copies in bf16 of a group's values.
bool rounds(const RankSetting& setting, const GroupLayout& group) {
  return setting.activations == ActivationPrecision::bf16 &&
         std::ranges::any_of(group.parameters, &Parameter::is_matrix);
}

/// What is the same on all ranks.
RankMemory whole_memory(const RankSetting& setting, const ParameterStore& store, const std::vector<GroupLayout>& groups,
                        std::int64_t pieces, int ranks) {
  constexpr auto kNumberBytes = static_cast<std::int64_t>(size_of(DType::f32));
  RankMemory memory;
  for (const GroupLayout& group : groups) {
    memory.values = most_of({memory.values, most_at(group.count, kNumberBytes)});
    if (rounds(setting, group))
      memory.rounded = most_of({memory.rounded, most_at(group.count, static_cast<std::int64_t>(size_of(DType::bf16)))});
    memory.norms += kSumBytes * (chunks_of(group.segments) + static_cast<std::int64_t>(group.segments.size()));
  }
  memory.gradients = memory.values;
  if (setting.averages) memory.averages = most_at(memory.values, 2);
  for (const GroupLayout& group : store.layout(DType::f32, true)) {
    memory.values = most_of({memory.values, most_at(group.count, kNumberBytes)});
    if (rounds(setting, group))
      memory.rounded = most_of({memory.rounded, most_at(group.count, static_cast<std::int64_t>(size_of(DType::bf16)))});
  }
  if (!groups.empty()) memory.norms += kSumBytes;
  std::int64_t tables = 0, kept_buffers = 0;
  for (const auto& [name, parameter] : store.parameters()) {
    if (parameter->gradient_kind() == Gradient::none) {
      memory.buffers = most_of({memory.buffers, stored_bytes(*parameter)});
      if (!parameter->frozen()) kept_buffers = most_of({kept_buffers, stored_bytes(*parameter)});
    }
    if (parameter->gradient_kind() != Gradient::rows) continue;
    // Of each row a rank has some of the columns.
    check_shared_columns(name, parameter->shape()[1], ranks);
    memory.tables = most_of({memory.tables, stored_bytes(*parameter) / ranks});
    if (parameter->frozen()) continue;
    const std::int64_t row_state =
        table_row_state_bytes(setting.tables) + table_moment_bytes(setting.tables, parameter->shape()[1] / ranks);
    memory.table_state = most_of({memory.table_state, most_at(parameter->shape()[0], row_state)});
    ++tables;
  }
  if (tables > 0) memory.norms += kSumBytes * (tables + 2);
  if (tables > 0 && setting.tables.kind == TableKind::adam && setting.tables.mode == TableMode::deferred)
    memory.norms += kSumBytes * TableClock::of(setting.tables.beta1, setting.tables.beta2).count();
  memory.kept_buffers = kept_buffers;
  const auto levels = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(pieces - 1)));
  memory.sums = most_at(most_of({memory.gradients, kept_buffers}), levels);
  return memory;
}

}  // namespace

std::int64_t RankMemory::in_store() const {
  return most_of({values, gradients, averages, rounded, state, norms, exchange, tables, table_state, buffers});
}

std::int64_t RankMemory::total() const { return most_of({in_store(), kept_buffers, sums}); }

std::vector<RankMemory> rank_memory(const RankSetting& setting, const ParameterStore& store, int ranks) {
  const std::vector<GroupLayout> groups = store.layout(DType::f32);
  const std::vector<Bucket> buckets = make_buckets(groups, DType::f32, ranks);
  std::vector<RankMemory> memory(
      static_cast<std::size_t>(ranks),
      whole_memory(setting, store, groups, std::max<std::int64_t>(1, setting.pieces / ranks), ranks));
  const std::int64_t state_values = values_per_parameter(setting.optimizer) - 2;  // beside value and gradient
  for (const Bucket& bucket : buckets)
    for (int rank = 0; rank < ranks; ++rank) {
      RankMemory& own = memory[static_cast<std::size_t>(rank)];
      const std::int64_t part =
          most_at(bucket.end_of(rank) - bucket.begin_of(rank), static_cast<std::int64_t>(size_of(DType::f32)));
      own.state = most_of({own.state, most_at(part, state_values)});
      own.exchange = most_of({own.exchange, most_at(part, ranks - 1)});
    }
  return memory;
}

RankMemory largest_rank_memory(const RankSetting& setting, const ParameterStore& store, int ranks) {
  const std::vector<RankMemory> memory = rank_memory(setting, store, ranks);
  return *std::ranges::max_element(memory, {}, &RankMemory::total);
}

}  // namespace engram
