/// Attention whose farthest distances share one row of the position keys, and is told so: the results must be those of
/// a table with a row for every distance.

#include <algorithm>

#include "autograd/functions/attention.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/tape.hpp"
#include "tests/ops/attention_truth.hpp"

namespace engram::harness::attention_shared_distance_test {
namespace {

/// x: queries (also keys and values) [2, block, 2 H], the past's keys and values, position keys [distances, 2] of which
/// the last serves all greater distances, and which row serves each distance.
OpCase shared_rows(std::string name, AttentionOptions options, std::int64_t block, std::int64_t rows) {
  const std::int64_t width = 2 * options.heads, distances = options.max_distance + 1;
  options.min_distance = 0;
  options.shared_distance = rows - 1;
  std::vector<double> ids;
  for (std::int64_t distance = 0; distance < distances; ++distance)
    ids.push_back(static_cast<double>(std::min(distance, rows - 1)));
  OpCase op;
  op.name = std::move(name);
  op.inputs = {{normal({2, block, width}), normal({2 * options.windows.total, 2}), normal({rows, 2}),
                integers({distances}, ids)}};
  op.function = [options](std::span<const Variable> x) {
    return attention({{.content_query = x[0],
                       .position_query = x[0],
                       .past_keys = x[1],
                       .past_values = x[1],
                       .keys = x[0],
                       .values = x[0],
                       .position_keys = embedding(x[2], x[3].value())}},
                     options)
        .out;
  };
  op.reference = [options](std::span<const Array64> x) {
    std::vector<Array64> all(kAttentionArguments);
    for (const int place : {kContentQuery, kPositionQuery, kKeys, kValues}) all[static_cast<std::size_t>(place)] = x[0];
    all[kPastKeys] = all[kPastValues] = x[1];
    Array64& table = all[kPositionKeys];
    table.shape = {x[3].axis(0), 2};
    for (const double row : x[3].data)
      for (std::size_t column = 0; column < 2; ++column)
        table.data.push_back(x[2].data[static_cast<std::size_t>(row) * 2 + column]);
    return attention_truth(all, options).out;
  };
  return op;
}

const OpCases cases{
    shared_rows("attention, far distances with one row", attention_options(7, {7, 4}), 5, 4),
    // The second head's window ends before the shared distances, the third's has one of them.
    shared_rows("attention, far distances with one row in some heads", attention_options(9, {9, 3, 5}), 6, 6),
    shared_rows("attention, all distances but the nearest with one row", attention_options(6, {6}), 9, 2),
    // Several tiles.
    shared_rows("attention, far distances with one row over several tiles", attention_options(150, {150}), 70, 40),
};

}  // namespace
}  // namespace engram::harness::attention_shared_distance_test
