#include "nn/optim/row_exchange.hpp"

#include <utility>
#include <vector>

#include "core/stopwatch.hpp"

namespace engram {
namespace {

/// A tensor of every rank, one after the other, and the way of the others' here.
struct GatheredRows {
  Tensor all;
  std::unique_ptr<Transfer> transfer;

  GatheredRows(Step& step, const Tensor& own, Communicator& ranks) {
    const std::int64_t rows = own.shape()[0];
    all = step.empty(own.shape().with(0, rows * ranks.size()), own.dtype());
    const Tensor here = all.rows(ranks.rank() * rows, (ranks.rank() + 1) * rows);
    step.backend().copy(here.raw(), own.raw(), own.bytes(), CopyKind::device_to_device);
    if (step.backend().works_behind()) step.backend().synchronize();
    std::vector<std::size_t> ends;
    for (int q = 1; q <= ranks.size(); ++q) ends.push_back(static_cast<std::size_t>(q) * own.bytes());
    transfer = ranks.start_gather(all.raw(), ends);
  }

  Tensor of(int rank, int ranks) const {
    const std::int64_t rows = all.shape()[0] / ranks;
    return all.rows(rank * rows, (rank + 1) * rows);
  }
};

}  // namespace

ExchangeCosts gather_row_gradients(Step& step, ParameterStore& store, Communicator& ranks) {
  ExchangeCosts costs;
  if (ranks.alone()) return costs;
  const Stopwatch watch;
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
    for (const GatheredPart& part : gathered)
      for (const GatheredRows* rows : {&part.ids, &part.weights, &part.sources}) {
        rows->transfer->wait();
        const auto all = static_cast<std::int64_t>(rows->all.bytes());
        costs.bytes_sent += all / ranks.size() * (ranks.size() - 1);
      }
    for (int q = 0; q < ranks.size(); ++q)
      for (const GatheredPart& part : gathered)
        parts.push_back({.uses = {.ids = part.ids.of(q, ranks.size()),
                                  .weights = part.weights.of(q, ranks.size()),
                                  .sources = part.sources.of(q, ranks.size())},
                         .order = {}});
  }
  costs.seconds = costs.seconds_waited = watch.seconds();
  return costs;
}

}  // namespace engram
