#pragma once
/// The tables that every tile of a call meets, rounded and packed once for all of them: persistent slots that are not
/// copied with the context, and position tables. Only for products of bf16 operands that the processor has instructions
/// for (AttentionPlan::packs).

#include <optional>
#include <utility>

#include "cpu/attention/attention_plan.hpp"
#include "cpu/packed_rows.hpp"

namespace engram::cpu {

/// What one head's products meet.
struct HeadTables {
  PackedRows slot_keys, slot_values;          ///< from slot 0 on
  PackedRows position_keys, position_values;  ///< from place 0 of the head's band on
};

/// How a pass meets keys and values.
struct PassUses {
  RowUses keys, values;
  /// `recomputes`: scores are made again in the backward pass, as no weights were kept.
  PassUses(AttentionPass pass, bool recomputes)
      : keys{.against = pass == AttentionPass::forward || recomputes, .times = pass == AttentionPass::backward},
        values{.against = pass == AttentionPass::backward, .times = pass == AttentionPass::forward} {}
};

class PackedTables {
 public:
  template <class T>
  PackedTables(Step& step, const AttentionPlan& plan, const AttentionInputs& in, const ReversedTables<T>& positions,
               const AttentionOptions& options, const PassUses& uses)
      : heads_(plan.heads.size(), step.objects()) {
    if (!plan.packs) return;
    const AttentionSizes& s = plan.sizes;
    const std::int64_t slots = plan.gathers_slots ? 0 : s.persistent;
    const auto rows_of = [](const HeadPlan& head, const ReversedTable<T>& table) { return table ? head.slots : 0; };
    std::int64_t size = 0;
    for (const HeadPlan& head : plan.heads)
      for (const auto& [count, use] : {std::pair(slots, uses.keys), std::pair(slots, uses.values),
                                       std::pair(rows_of(head, positions.keys), uses.keys),
                                       std::pair(rows_of(head, positions.values), uses.values)})
        size += PackedRows::size(count, s.depth, use);
    if (size == 0) return;
    memory_.emplace(step.memory(), static_cast<std::size_t>(size) * sizeof(bf16));
    if (!step.computes()) return;
    bf16* next = memory_->data<bf16>();
    const auto place = [&](std::int64_t count, const RowUses& use) {
      if (count == 0) return PackedRows();
      const PackedRows rows(count, s.depth, use, next);
      next += PackedRows::size(count, s.depth, use);
      return rows;
    };
    for (std::size_t i = 0; i < heads_.size(); ++i) {
      const HeadPlan& head = plan.heads[i];
      heads_[i] = {place(slots, uses.keys), place(slots, uses.values), place(rows_of(head, positions.keys), uses.keys),
                   place(rows_of(head, positions.values), uses.values)};
    }
    parallel_items(s.heads, [&](std::int64_t head) {
      const HeadTables& tables = of(head);
      if (slots > 0) {
        const std::int64_t first = head * slots * s.depth;
        tables.slot_keys.pack(in.slot_keys.data<const T>() + first, s.depth);
        tables.slot_values.pack(in.slot_values.data<const T>() + first, s.depth);
      }
      const auto pack = [&](const PackedRows& packed, const ReversedTable<T>& table) {
        if (!table) return;
        const RowsAt<const T> rows = table.of_head(plan, options, head);
        packed.pack(rows.data, rows.stride);
      };
      pack(tables.position_keys, positions.keys);
      pack(tables.position_values, positions.values);
    });
  }

  const HeadTables& of(std::int64_t head) const { return heads_[static_cast<std::size_t>(head)]; }

 private:
  std::pmr::vector<HeadTables> heads_;
  std::optional<Workspace> memory_;
};

}  // namespace engram::cpu
