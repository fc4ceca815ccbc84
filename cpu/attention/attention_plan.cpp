#include "cpu/attention/attention_plan.hpp"

#include <numeric>
#include <utility>

#include "core/error.hpp"

namespace engram::cpu {

AttentionPlan::AttentionPlan(Step& step, const AttentionInputs& in, const AttentionOptions& options, AttentionPass pass)
    : sizes(in, options), heads(step.objects()), longest_first(static_cast<std::size_t>(sizes.heads), step.objects()) {
  heads.reserve(static_cast<std::size_t>(sizes.heads));
  std::int64_t kept = 0;
  for (std::int64_t head = 0; head < sizes.heads; ++head) {
    std::optional<double> zeta;
    if (in.span && !has_query_spans(in))
      dispatch_float(in.span.dtype(), "attention",
                     [&]<class T>() { zeta = static_cast<double>(in.span.data<const T>()[head]); });
    const std::int64_t window = options.max_distance == 0 ? 0 : options.windows.window[static_cast<std::size_t>(head)];
    heads.emplace_back(options, sizes.block, window, zeta, step.objects());
    heads.back().kept_first = kept;
    heads.back().kept_row = kept_row_length(in, options, head);
    kept += sizes.streams * sizes.block * heads.back().kept_row;
  }
  // Below these sizes copying costs less than a further product, measured on a Zen 3; a short block (generation) reads
  // every row just once.
  constexpr std::int64_t kShortBlock = 8, kSmallTable = 16384;
  gathers_context = pass == AttentionPass::backward || sizes.block >= kShortBlock;
  packs = gathers_context && in.content_query.dtype() == DType::f32 && step.products() == ProductPrecision::bf16 &&
          multiplies_bf16();
  gathers_slots = gathers_context && !packs && sizes.persistent * sizes.depth <= kSmallTable;
  slot_columns = pass == AttentionPass::backward && !gathers_slots ? 0 : sizes.persistent;
  for (const HeadPlan& head : heads) {
    scratch_columns = std::max(scratch_columns, matrix_row_length(head.columns() + slot_columns));
    scratch_tile = std::max(scratch_tile, head.tile);
    const std::int64_t of_tile = head.columns() + (gathers_slots ? sizes.persistent : 0);
    const std::int64_t of_stream = head.slots == 0 ? 0 : sizes.block - 1 + head.slots;
    if (gathers_context) copied_rows = std::max(copied_rows, copies_streams() ? of_stream : of_tile);
  }
  std::iota(longest_first.begin(), longest_first.end(), 0);
  // By number among equals: a stable sort would take memory.
  std::ranges::sort(longest_first, std::less<>(),
                    [this](int head) { return std::pair(-heads[std::size_t(head)].slots, head); });
}

}  // namespace engram::cpu
