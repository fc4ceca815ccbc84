#include "autograd/rank_exchange.hpp"

#include <utility>

#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/rules/table_columns.hpp"

namespace engram {
namespace {

/// Rows of a tensor that rank `rank` of so many has.
Tensor rows_of(const Tensor& all, int rank, int ranks) {
  const std::int64_t rows = all.shape()[0] / ranks;
  return all.rows(rank * rows, (rank + 1) * rows);
}

void copy_to(Step& step, const Tensor& to, const Tensor& from) {
  if (from.bytes() > 0) step.backend().copy(to.raw(), from.raw(), from.bytes(), CopyKind::device_to_device);
}

/// Where the equal parts of a tensor end, one for each rank.
std::vector<std::size_t> equal_parts(const Tensor& all, int ranks) {
  std::vector<std::size_t> ends;
  for (int q = 1; q <= ranks; ++q)
    ends.push_back(all.bytes() / static_cast<std::size_t>(ranks) * static_cast<std::size_t>(q));
  return ends;
}

/// The rows of `send` that are rank q's go to rank q, into those rows of `receive` that are the sender's. A rank's own
/// are not touched.
void exchange_rows(Step& step, const Tensor& send, const Tensor& receive, Communicator& ranks) {
  ranks.in_step(step.backend(),
                [&ranks, from = send.raw(), to = receive.raw(), ends = equal_parts(send, ranks.size())] {
                  ranks.start_exchange(from, ends, to, ends)->wait();
                });
}

}  // namespace

void check_shared_columns(std::string_view table, std::int64_t width, int ranks) {
  if (column_parts(width) % ranks != 0)
    throw UsageError(
        text("training: 1, 2, 4 or 8 ranks share the columns of a table, and they must divide its width, got ", ranks,
             " ranks for ", table, " of width ", width, "\n  another number of ranks trains the same run"));
}

void sum_by_tree(Step& step, std::vector<Tensor> parts, std::size_t own) {
  // a + b and b + a have the same bits, so that every sum may be where the own part was, as soon as it is in it.
  for (std::size_t stride = 1; stride < parts.size(); stride *= 2) {
    for (std::size_t left = 0; left + stride < parts.size(); left += 2 * stride) {
      Tensor &first = parts[left], &second = parts[left + stride];
      const bool to_second = own >= left + stride && own < left + 2 * stride;
      const Tensor& target = to_second ? second : first;
      kernels::accumulate(step, to_second ? first : second, 1.0, {target, Write::add});
      first = target;
    }
  }
}

void gather_sum(Step& step, const Tensor& own, Communicator& ranks) {
  const std::int64_t count = own.count();
  const Tensor all = step.empty({ranks.size() * count}, own.dtype());
  std::vector<Tensor> parts;
  std::vector<std::size_t> ends;
  for (int q = 0; q < ranks.size(); ++q) {
    parts.push_back(all.rows(q * count, (q + 1) * count));
    ends.push_back(static_cast<std::size_t>(q + 1) * own.bytes());
  }
  const Tensor& here = parts[static_cast<std::size_t>(ranks.rank())];
  step.backend().copy(here.raw(), own.raw(), own.bytes(), CopyKind::device_to_device);
  gather_in_step(ranks, step.backend(), {{all.raw(), ends}});
  sum_by_tree(step, parts, static_cast<std::size_t>(ranks.rank()));
  step.backend().copy(own.raw(), here.raw(), own.bytes(), CopyKind::device_to_device);
}

Tensor gathered_rows(Step& step, const Tensor& own, Communicator& ranks) {
  Tensor all = step.empty(own.shape().with(0, own.shape()[0] * ranks.size()), own.dtype());
  copy_to(step, rows_of(all, ranks.rank(), ranks.size()), own);
  gather_in_step(ranks, step.backend(), {{all.raw(), equal_parts(all, ranks.size())}});
  return all;
}

Tensor own_rows(Step& step, const Tensor& columns, Communicator& ranks) {
  const std::int64_t rows = columns.shape()[0] / ranks.size(), width = columns.shape()[1];
  const Tensor received = step.empty(columns.shape(), columns.dtype());
  exchange_rows(step, columns, received, ranks);
  Tensor whole = step.empty({rows, width * ranks.size()}, columns.dtype());
  for (int q = 0; q < ranks.size(); ++q) {
    const Tensor from = rows_of(q == ranks.rank() ? columns : received, q, ranks.size());
    kernels::copy_runs(step, from, {.offset = 0, .stride = width}, {whole, Write::set},
                       {.offset = q * width, .stride = width * ranks.size()}, rows, width);
  }
  return whole;
}

Tensor own_columns(Step& step, const Tensor& rows, Communicator& ranks) {
  const std::int64_t count = rows.shape()[0], width = rows.shape()[1] / ranks.size();
  const Tensor send = step.empty({count * ranks.size(), width}, rows.dtype());
  Tensor columns = step.empty(send.shape(), rows.dtype());
  for (int q = 0; q < ranks.size(); ++q) {
    const Tensor to = rows_of(q == ranks.rank() ? columns : send, q, ranks.size());
    kernels::copy_runs(step, rows, {.offset = q * width, .stride = width * ranks.size()}, {to, Write::set},
                       {.offset = 0, .stride = width}, count, width);
  }
  exchange_rows(step, send, columns, ranks);
  return columns;
}

Tensor summed_rows(Step& step, const Tensor& parts, Communicator& ranks) {
  const Tensor received = step.empty(parts.shape(), parts.dtype());
  exchange_rows(step, parts, received, ranks);
  std::vector<Tensor> of_ranks;
  for (int q = 0; q < ranks.size(); ++q) of_ranks.push_back(rows_of(received, q, ranks.size()));
  const auto own = static_cast<std::size_t>(ranks.rank());
  copy_to(step, of_ranks[own], rows_of(parts, ranks.rank(), ranks.size()));
  Tensor sum = of_ranks[own];
  sum_by_tree(step, std::move(of_ranks), own);
  return sum;
}

}  // namespace engram
