#include "autograd/functions/product_key_top_k.hpp"

#include <algorithm>
#include <limits>

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/matmul.hpp"
#include "core/kernels/product_key_top_k.hpp"

namespace engram {
namespace {

using kernels::Transpose;

constexpr std::int64_t kMostSets = 3;
// Of a tile's half-scores: what a core's share of the last cache holds. Fewer rows than the least would read all keys
// for hardly any work; their half-scores are a share 16 / dq of the keys.
constexpr std::int64_t kTileBytes = std::int64_t{8} << 20;
// A device that works behind the host has no such cache, and many more processors to keep busy with one tile.
constexpr std::int64_t kTileBytesBehind = std::int64_t{256} << 20;
constexpr std::int64_t kLeastTileRows = 16;

/// Tiles of rows, and the batches of matrices in them: one matrix per head and set. A function of shapes and of the
/// kind of device.
struct Tiles {
  std::int64_t rows, heads, sets, n, width;  // width of a sub-key
  std::int64_t in_tile;
  DType dtype;  // of half-scores

  Tiles(const Tensor& query, const Tensor& keys, const Backend& backend)
      : rows(query.shape()[0]),
        heads(keys.shape()[0]),
        sets(keys.shape()[1]),
        n(keys.shape()[2]),
        width(keys.shape()[3]),
        dtype(compute_dtype(query.dtype())) {
    const std::int64_t row_bytes = batch() * n * static_cast<std::int64_t>(size_of(dtype));
    in_tile =
        std::min(rows, std::max(kLeastTileRows, (backend.works_behind() ? kTileBytesBehind : kTileBytes) / row_bytes));
  }

  std::int64_t batch() const { return heads * sets; }
  Tensor half_scores(Step& step, DType of) const { return step.empty({in_tile, heads, sets, n}, of); }
  /// Rows of a tensor [rows, H dq].
  MatrixView of_queries(const Tensor& tensor, std::int64_t begin, std::int64_t end) const {
    return {tensor, begin * batch() * width, end - begin, width, batch() * width, width};
  }
  MatrixView of_keys(const Tensor& tensor) const { return {tensor, 0, n, width, width, n * width}; }
  MatrixView of_tile(const Tensor& tile) const { return {tile, 0, tile.shape()[0], n, batch() * n, n}; }

  /// Calls body(begin, end) for every tile.
  template <class Body>
  void each(Body body) const {
    for (std::int64_t begin = 0; begin < rows; begin += in_tile) body(begin, std::min(rows, begin + in_tile));
  }
};

struct ProductKeyTopK final : Node {
  Tensor query, keys;  // each for the other's gradient
  Tensor ids;          // [R, H, k]: where the scores' gradients go

  ProductKeyTopK(Tensor queries, Tensor key_table, Tensor slots)
      : query(std::move(queries)), keys(std::move(key_table)), ids(std::move(slots)) {}
  std::string_view name() const override { return "product_key_top_k"; }
  std::vector<Saved> saved() const override { return {{"query", query}, {"keys", keys}, {"ids", ids}}; }

  void backward(Step& step, Backward& pass) override {
    const Tensor& dscores = pass.output_grad();
    const Target dquery = pass.input_grad(0), dkeys = pass.input_grad(1);
    const Tiles tiles(query, keys, step.backend());
    if (tiles.rows == 0) return kernels::clear_if_set(step, dkeys);
    const Tensor memory = tiles.half_scores(step, tiles.dtype);
    // The gradient of f32 sums of bf16 products is an operand of such products itself.
    const Tensor rounded = query.dtype() == tiles.dtype ? Tensor{} : tiles.half_scores(step, query.dtype());
    tiles.each([&](std::int64_t begin, std::int64_t end) {
      Tensor dhalf_scores = memory.rows(0, end - begin);
      kernels::product_key_scatter(step, dscores.rows(begin, end), ids.rows(begin, end), dhalf_scores);
      Tensor operand = dhalf_scores;
      if (rounded) {
        operand = rounded.rows(0, end - begin);
        kernels::convert(step, dhalf_scores, operand);
      }
      if (dquery)
        kernels::matmul(step, tiles.of_tile(operand), Transpose::no, tiles.of_keys(keys), Transpose::no,
                        tiles.of_queries(dquery.tensor, begin, end), tiles.batch(), 1.0, dquery.write);
      if (dkeys)
        kernels::matmul(step, tiles.of_tile(operand), Transpose::yes, tiles.of_queries(query, begin, end),
                        Transpose::no, tiles.of_keys(dkeys.tensor), tiles.batch(), 1.0,
                        begin == 0 ? dkeys.write : Write::add);
    });
  }
};

void check_shapes(const Shape& query, const Shape& keys) {
  if (keys.rank() != 4 || keys[0] < 1 || keys[1] < 1 || keys[1] > kMostSets || keys[2] < 1 || keys[3] < 1)
    throw ShapeError(
        text("product_key_top_k: keys must be [H, F, n, dq / F] with F = 1, 2 or 3, none empty, got ", keys));
  const std::int64_t width = keys[0] * keys[1] * keys[3];
  if (query.rank() != 2 || query[1] != width)
    throw ShapeError(text("product_key_top_k: the query must be [R, H dq] with H dq = ", width, " for keys ", keys,
                          ", got ", query, "\n  dq must be a multiple of the number of sets, ", keys[1]));
}

/// The number of slots, n^F.
std::int64_t count_slots(const Shape& keys) {
  const std::int64_t n = keys[2];
  constexpr std::int64_t kMostSubKeys = std::numeric_limits<std::int32_t>::max();
  if (n > kMostSubKeys)
    throw ShapeError(text("product_key_top_k: a set may have at most ", kMostSubKeys, " keys, got ", n));
  std::int64_t slots = 1;
  for (std::int64_t set = 0; set < keys[1]; ++set) {
    if (slots > std::numeric_limits<std::int64_t>::max() / n)
      throw ShapeError(text("product_key_top_k: ids must fit into 64 bits, got n^F = ", n, "^", keys[1], " slots"));
    slots *= n;
  }
  return slots;
}

}  // namespace

ProductKeySelection product_key_top_k(const Variable& query, const Variable& keys, std::int64_t k) {
  check_shapes(query.shape(), keys.shape());
  check_dtype("product_key_top_k", "keys", keys.value(), query.dtype());
  check_same_device("product_key_top_k", query.value(), keys.value());
  const std::int64_t slots = count_slots(keys.shape());
  if (k < 1 || k > slots)
    throw ShapeError(text("product_key_top_k: k must be 1 to n^F = ", slots, " for n = ", keys.shape()[2],
                          " keys in each of ", keys.shape()[1], " sets, got ", k));
  Step& step = query.tape().step();
  const Tiles tiles(query.value(), keys.value(), step.backend());
  Tensor scores = step.empty({tiles.rows, tiles.heads, k}, tiles.dtype);
  Tensor ids = step.empty(scores.shape(), DType::i64);
  const Tensor memory = tiles.half_scores(step, tiles.dtype);
  tiles.each([&](std::int64_t begin, std::int64_t end) {
    const Tensor half_scores = memory.rows(0, end - begin);
    kernels::matmul(step, tiles.of_queries(query.value(), begin, end), Transpose::no, tiles.of_keys(keys.value()),
                    Transpose::yes, tiles.of_tile(half_scores), tiles.batch(), 1.0, Write::set);
    Tensor tile_scores = scores.rows(begin, end), tile_ids = ids.rows(begin, end);
    kernels::product_key_select(step, half_scores, tile_scores, tile_ids);
  });
  Variable result = query.tape().record(ProductKeyTopK{query.value(), keys.value(), ids}, {query, keys}, scores);
  return {std::move(result), std::move(ids)};
}

}  // namespace engram
