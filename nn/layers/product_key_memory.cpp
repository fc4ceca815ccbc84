#include "nn/layers/product_key_memory.hpp"

#include <algorithm>

#include "autograd/functions/dropout.hpp"
#include "autograd/functions/multiply.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/functions/product_key_top_k.hpp"
#include "autograd/functions/reshape.hpp"
#include "autograd/functions/rms_norm.hpp"
#include "autograd/functions/softmax.hpp"
#include "autograd/functions/weighted_rows.hpp"
#include "core/scope.hpp"
#include "nn/init.hpp"

namespace engram {
namespace {

Shape key_shape(const ProductKeyOptions& options) {
  if (options.keys == KeyKind::flat) return {options.heads, 1, options.slots(), options.query_width};
  return {options.heads, options.factors, options.subkeys, options.query_width / options.factors};
}

/// U(-1/sqrt(length of a sub-key), ...): [product-key 1.4].
Parameter make_keys(const ProductKeyOptions& options) {
  const Shape shape = key_shape(options);
  Initializer start = init::uniform_fan_in(shape[-1]);
  if (options.same_keys) start.stream = 1;
  return Parameter(shape, start);
}

const ProductKeyOptions& checked(const ProductKeyOptions& options, std::int64_t width) {
  options.check_alone(width);
  return options;
}

}  // namespace

ValueTable::ValueTable(const ProductKeyOptions& options, std::int64_t width)
    : rows_({options.slots(), options.value_width_in(width)},
            options.value_init == ValueStart::zeros
                ? init::zeros()
                : init::normal_variance(1.0 / static_cast<double>(options.value_width_in(width))),
            Gradient::rows, options.value_dtype == DType::bf16 ? std::optional(DType::bf16) : std::nullopt) {}

void ValueTable::visit(Visitor& visit) { visit("rows", rows_); }

ProductKeyMemory::ProductKeyMemory(const ProductKeyOptions& options, std::int64_t width,
                                   std::shared_ptr<ValueTable> shared)
    : options_(checked(options, width)),
      query_(options.query_options(width)),
      keys_(make_keys(options)),
      values_(shared ? std::move(shared) : std::make_shared<ValueTable>(options, width)) {
  const std::int64_t value_width = options.value_width_in(width);
  if (options.gate == MemoryGate::swish) gate_.emplace(width, value_width, false);
  if (options.gate == MemoryGate::scalar) gate_.emplace(width, 1, false);
  if (options.gate == MemoryGate::swish || options.projection) output_.emplace(value_width, width, false);
}

Variable ProductKeyMemory::forward(const Variable& x, const RowMask& mask, MemoryTrace* trace) {
  const Scope scope("memory");
  Tape& tape = x.tape();
  const std::int64_t rows = x.shape().rows(), heads = options_.heads, selected = options_.selected;
  const Variable flat = reshape(x, {rows, x.shape()[-1]});
  const Variable queries = dropout(query_.forward(dropout(flat, options_.input_dropout), mask), options_.query_dropout);
  Variable keys = tape.parameter(keys_);
  if (options_.unit_keys) keys = l2_norm(keys);
  const ProductKeySelection found = product_key_top_k(queries, keys, selected);
  Parameter& table = values_->rows();
  const Tensor ids = found.ids.view({rows, heads * selected});
  // Rows come from the disk while their weights are computed.
  if (table.mapped() != nullptr) table.mapped()->read_ahead(ids);
  const Variable weights = softmax(found.scores);
  if (trace != nullptr) *trace = {.ids = found.ids, .weights = weights.value(), .scores = found.scores.value()};
  const Variable read = weighted_rows(tape, table, ids, reshape(weights, {rows, heads * selected}));
  return dropout(reshape(read_values(flat, read), x.shape()), options_.value_dropout);
}

Variable ProductKeyMemory::read_values(const Variable& x, const Variable& read) {
  Variable y = read;
  if (options_.gate == MemoryGate::swish) y = multiply(y, silu(gate_->forward(x)));
  if (options_.gate == MemoryGate::scalar) y = multiply(y, sigmoid(gate_->forward(x)));
  return output_ ? output_->forward(y) : y;
}

void ProductKeyMemory::visit(Visitor& visit) {
  visit("query", query_);
  visit("keys", keys_);
  visit("values", *values_);
  if (gate_) visit("gate", *gate_);
  if (output_) visit("output", *output_);
}

MemoryMaker::MemoryMaker(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers)
    : options_(options), width_(width), layers_(options.memory_layers(model_layers)) {
  if (options.shared_values && !layers_.empty()) shared_ = std::make_shared<ValueTable>(options, width);
}

std::unique_ptr<ProductKeyMemory> MemoryMaker::make(std::int64_t layer) const {
  if (!std::ranges::binary_search(layers_, layer + 1)) return nullptr;
  return std::make_unique<ProductKeyMemory>(options_, width_, shared_);
}

}  // namespace engram
