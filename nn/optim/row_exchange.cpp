#include "nn/optim/row_exchange.hpp"

#include <utility>
#include <vector>

namespace engram {
namespace {

/// A tensor of every rank, one after the other.
struct GatheredRows {
  Tensor all;

  GatheredRows(Step& step, const Tensor& own, Communicator& ranks) {
    const std::int64_t rows = own.shape()[0];
    all = step.empty(own.shape().with(0, rows * ranks.size()), own.dtype());
    const Tensor here = all.rows(ranks.rank() * rows, (ranks.rank() + 1) * rows);
    step.backend().copy(here.raw(), own.raw(), own.bytes(), CopyKind::device_to_device);
  }

  PartedBuffer buffer(int ranks) const {
    PartedBuffer parted{all.raw(), {}};
    for (int q = 1; q <= ranks; ++q)
      parted.ends.push_back(all.bytes() / static_cast<std::size_t>(ranks) * static_cast<std::size_t>(q));
    return parted;
  }
  Tensor of(int rank, int ranks) const {
    const std::int64_t rows = all.shape()[0] / ranks;
    return all.rows(rank * rows, (rank + 1) * rows);
  }
};

}  // namespace

void gather_row_gradients(Step& step, ParameterStore& store, Communicator& ranks, ExchangeCosts& costs) {
  if (ranks.alone()) return;
  for (Parameter* const table : store.tables()) {
    std::vector<RowGradient::Part>& parts = table->row_gradient().parts;
    struct GatheredPart {
      GatheredRows ids, weights, sources;
    };
    std::vector<GatheredPart> gathered;
    for (const RowGradient::Part& part : parts)
      gathered.push_back({GatheredRows(step, part.uses.ids, ranks), GatheredRows(step, part.uses.weights, ranks),
                          GatheredRows(step, part.uses.sources, ranks)});
    parts.clear();
    std::vector<PartedBuffer> buffers;
    for (const GatheredPart& part : gathered)
      for (const GatheredRows* rows : {&part.ids, &part.weights, &part.sources})
        buffers.push_back(rows->buffer(ranks.size()));
    gather_in_step(ranks, step.backend(), std::move(buffers), &costs);
    for (int q = 0; q < ranks.size(); ++q)
      for (const GatheredPart& part : gathered)
        parts.push_back({.uses = {.ids = part.ids.of(q, ranks.size()),
                                  .weights = part.weights.of(q, ranks.size()),
                                  .sources = part.sources.of(q, ranks.size())},
                         .order = {}});
  }
}

}  // namespace engram
