#include "autograd/functions/weighted_rows.hpp"

#include "autograd/functions/check_ids.hpp"
#include "autograd/functions/rounded_sums.hpp"
#include "autograd/rank_exchange.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/row_order.hpp"
#include "core/kernels/weighted_rows.hpp"

namespace engram {
namespace {

struct WeightedRows final : Node {
  Tensor values;   // [N, width]
  Tensor ids;      // [R, A]
  Tensor weights;  // [R, A]

  WeightedRows(Tensor table, Tensor row_ids, Tensor row_weights)
      : values(std::move(table)), ids(std::move(row_ids)), weights(std::move(row_weights)) {}
  std::string_view name() const override { return "weighted_rows"; }
  std::vector<Saved> saved() const override { return {{"values", values}, {"ids", ids}, {"weights", weights}}; }
  void backward(Step& step, Backward& pass) override {
    RowGradient* const rows = pass.row_grad(0);
    if (rows == nullptr && !pass.wants_grad(0) && !pass.wants_grad(1)) return;
    const Tensor& dy = pass.output_grad();
    RowGradient::Part part{.uses = {ids, weights, dy}, .order = {}};
    // A table's optimiser orders the uses of all lookups together; here they are needed for the weights alone.
    if (rows == nullptr || pass.wants_grad(1)) part.order = ordered(step, ids, values.shape()[0]);
    if (Target dweights = pass.input_grad(1))
      kernels::weighted_rows_weight_gradient(step, values, ids, dy, part.order, TableColumns::all(values.shape()[1]),
                                             dweights);
    if (rows != nullptr)
      rows->parts.push_back(std::move(part));
    else if (const Target dvalues = pass.input_grad(0))
      add_up_rounded(step, dvalues,
                     [&](const Target& sums) { kernels::add_row_uses(step, part.uses, part.order, sums); });
  }
};

/// Of a table whose columns ranks share. Ids and weights are those of all R ranks.
struct SharedRows final : Node {
  Parameter* table;
  Tensor ids;      // [R n, A]
  Tensor weights;  // [R n, A]

  SharedRows(Parameter& read, Tensor row_ids, Tensor row_weights)
      : table(&read), ids(std::move(row_ids)), weights(std::move(row_weights)) {}
  std::string_view name() const override { return "weighted_rows, of columns"; }
  std::vector<Saved> saved() const override { return {{"values", table->value()}, {"ids", ids}, {"weights", weights}}; }
  void backward(Step& step, Backward& pass) override {
    RowGradient* const rows = pass.row_grad(0);
    if (rows == nullptr && !pass.wants_grad(1)) return;
    Communicator& ranks = *table->shared_by();
    RowGradient::Part part{
        .uses = {ids, weights, own_columns(step, pass.output_grad(), ranks)}, .order = {}, .ranks = ranks.size()};
    if (Target dweights = pass.input_grad(1)) {
      part.order = ordered(step, ids, table->shape()[0]);
      const Tensor of_columns = step.empty(weights.shape(), weights.dtype());
      kernels::weighted_rows_weight_gradient(step, table->value(), ids, part.uses.sources, part.order, table->columns(),
                                             {of_columns, Write::set});
      kernels::accumulate(step, summed_rows(step, of_columns, ranks), 1.0, dweights);
    }
    if (rows != nullptr) rows->parts.push_back(std::move(part));
  }
};

/// `ranks`: how many such calls are one.
void check_arguments(Step& step, const Tensor& values, const Tensor& ids, const Variable& weights, int ranks = 1) {
  if (!ids || ids.shape().rank() != 2)
    throw ShapeError(text("weighted_rows: the ids must be [R, A], got ", ids.shape()));
  check_dtype("weighted_rows", "the ids", ids, DType::i64);
  check_shape("weighted_rows", "the weights", weights.value(), ids.shape());
  check_dtype("weighted_rows", "the weights", weights.value(), compute_dtype(values.dtype()));
  check_same_device("weighted_rows", values, ids);
  check_same_device("weighted_rows", values, weights.value());
  if (ids.count() > kMostRowUses / ranks)
    throw ShapeError(text("weighted_rows: at most ", kMostRowUses, " rows may be read in one call, got ", ids.count(),
                          ranks > 1 ? text(" on each of ", ranks, " ranks") : std::string(), "\n  split the batch"));
  check_row_ids("weighted_rows", "the ids", step, ids, values.shape()[0]);
}

/// values: [N, width], or rows that are padded to more.
Tensor read_rows(Step& step, const Tensor& values, std::int64_t width, const Tensor& ids, const Tensor& weights) {
  const bool in_bf16 = weights.dtype() == DType::f32 && step.activations() == ActivationPrecision::bf16;
  Tensor y = step.empty({ids.shape()[0], width}, in_bf16 ? DType::bf16 : weights.dtype());
  kernels::weighted_rows_forward(step, values, ids, weights, y);
  return y;
}

Variable shared_rows(Tape& tape, Parameter& table, const Tensor& own_ids, const Variable& own_weights) {
  Step& step = tape.step();
  Communicator& ranks = *table.shared_by();
  check_arguments(step, table.value(), own_ids, own_weights, ranks.size());
  const Tensor ids = gathered_rows(step, own_ids, ranks), weights = gathered_rows(step, own_weights.value(), ranks);
  if (tape.training()) table.refresh_rows(step, ids);
  const Tensor columns = read_rows(step, table.value(), table.columns().count, ids, weights);
  return tape.record(SharedRows{table, ids, weights}, {tape.parameter(table), own_weights},
                     own_rows(step, columns, ranks));
}

}  // namespace

Variable weighted_rows(const Variable& values, const Tensor& ids, const Variable& weights) {
  if (values.shape().rank() != 2)
    throw ShapeError(text("weighted_rows: the values must be [N, width], got ", values.shape()));
  Step& step = values.tape().step();
  check_arguments(step, values.value(), ids, weights);
  Tensor y = read_rows(step, values.value(), values.shape()[1], ids, weights.value());
  return values.tape().record(WeightedRows{values.value(), ids, weights.value()}, {values, weights}, std::move(y));
}

Variable weighted_rows(const MappedTable& table, const Tensor& ids, const Variable& weights) {
  Tape& tape = weights.tape();
  if (tape.training())
    throw Error(text("weighted_rows: a table in a mapped file must be read on an inference tape, got one of training '",
                     table.path().string(), "'\n  training needs the table in memory"));
  check_arguments(tape.step(), table.padded_rows(), ids, weights);
  return tape.constant(read_rows(tape.step(), table.padded_rows(), table.header().width, ids, weights.value()));
}

Variable weighted_rows(Tape& tape, Parameter& table, const Tensor& ids, const Variable& weights) {
  if (table.mapped() != nullptr) return weighted_rows(*table.mapped(), ids, weights);
  if (table.shared_by() != nullptr) return shared_rows(tape, table, ids, weights);
  if (tape.training()) table.refresh_rows(tape.step(), ids);
  return weighted_rows(tape.parameter(table), ids, weights);
}

}  // namespace engram
