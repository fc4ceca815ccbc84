#include "autograd/functions/embedding.hpp"

#include <array>
#include <span>

#include "autograd/functions/check_ids.hpp"
#include "autograd/functions/rounded_sums.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/gather_rows.hpp"

namespace engram {
namespace {

struct Embedding final : Node {
  Tensor index;  // [R]
  double factor;

  Embedding(Tensor ids, double scale_factor) : index(std::move(ids)), factor(scale_factor) {}
  std::string_view name() const override { return "embedding"; }
  std::vector<Saved> saved() const override { return {{"index", index}}; }
  void backward(Step& step, Backward& pass) override {
    if (const Target dtable = pass.input_grad(0))
      add_up_rounded(step, dtable,
                     [&](const Target& sums) { kernels::scatter_rows(step, pass.output_grad(), index, factor, sums); });
  }
};

}  // namespace

Variable embedding(const Variable& table, const Tensor& index, double factor) {
  if (table.shape().rank() != 2) throw ShapeError(text("embedding: the table must be [V, n], got ", table.shape()));
  if (!index || index.shape().rank() >= Shape::kMaxRank)
    throw ShapeError(
        text("embedding: the index must have at most ", Shape::kMaxRank - 1, " axes, got ", index.shape()));
  check_dtype("embedding", "the index", index, DType::i32);
  check_same_device("embedding", table.value(), index);
  Step& step = table.tape().step();
  check_ids("embedding", "the index", step, index, table.shape()[0]);

  const int rank = index.shape().rank();
  std::array<std::int64_t, Shape::kMaxRank> dims;
  for (int axis = 0; axis < rank; ++axis) dims[static_cast<std::size_t>(axis)] = index.shape()[axis];
  dims[static_cast<std::size_t>(rank)] = table.shape()[1];
  Tensor y = step.empty(Shape(std::span(dims).first(static_cast<std::size_t>(rank) + 1)), table.dtype());
  const Tensor flat = index.view({index.count()});
  kernels::gather_rows(step, table.value(), flat, factor, y);
  return table.tape().record(Embedding{flat, factor}, {table}, std::move(y));
}

}  // namespace engram
