#include "apps/run/evaluation/product_key_reads.hpp"

#include <vector>

#include "core/dtype.hpp"
#include "core/host_copy.hpp"

namespace engram {
namespace {

/// The positions that count, as rows of a trace: rows of the block one after the other, context and all.
std::vector<std::size_t> scored_rows(const data::Block& block) {
  std::vector<std::size_t> rows;
  const auto length = static_cast<std::size_t>(block.length), context = static_cast<std::size_t>(block.context);
  for (std::size_t i = 0; i < block.scored.size(); ++i)
    if (block.scored[i] != 0) rows.push_back(i / (length - context) * length + context + i % (length - context));
  return rows;
}

/// The rows named, moved to the front: `rows` ascend.
template <class T>
void keep_rows(std::vector<T>& values, const std::vector<std::size_t>& rows, std::size_t row_size) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < row_size; ++j) values[i * row_size + j] = values[rows[i] * row_size + j];
  values.resize(rows.size() * row_size);
}

}  // namespace

void hand_over(const ModelTrace& trace, const data::Block& block, Backend& backend, const ProductKeyReads& reads) {
  const std::vector<std::size_t> rows = scored_rows(block);
  for (std::size_t layer = 0; layer < trace.memories.size(); ++layer) {
    const MemoryTrace& memory = trace.memories[layer];
    if (!memory.ids) continue;
    std::vector<std::int64_t> ids = host_copy<std::int64_t>(backend, memory.ids);
    std::vector<double> weights = host_doubles(backend, memory.weights);
    const std::size_t row_size = ids.size() / block.inputs.size();
    keep_rows(ids, rows, row_size);
    keep_rows(weights, rows, row_size);
    reads(layer, ids, weights);
  }
}

}  // namespace engram
