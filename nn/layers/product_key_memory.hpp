#pragma once
/// A product-key memory: every head finds its k best of many slots by a query, and the slots' values, weighted by a
/// softmax over these k, are added up over all heads. Lample et al. (2019), section 3; [product-key 1].

#include <memory>
#include <optional>

#include "autograd/tape.hpp"
#include "nn/layers/linear.hpp"
#include "nn/layers/product_key_options.hpp"
#include "nn/layers/query_network.hpp"

namespace engram {

/// What a memory read in one forward pass; tensors of the step.
struct MemoryTrace {
  Tensor ids;      ///< [R, H, k] i64: the slots, best first
  Tensor weights;  ///< [R, H, k]
  Tensor scores;   ///< [R, H, k]
};

/// A table of values [slots, value width], which memories may share.
class ValueTable final : public Module {
 public:
  ValueTable(const ProductKeyOptions& options, std::int64_t width);
  Parameter& rows() { return rows_; }
  void visit(Visitor& visit) override;

 private:
  Parameter rows_;
};

class ProductKeyMemory final : public Module {
 public:
  /// A memory by itself; what a model's layer makes of it (`placement`) is not done here. width: of what it reads and
  /// of its result. `shared`: the table that all memories read; nullptr: its own. Throws UsageError naming the option
  /// and its value.
  ProductKeyMemory(const ProductKeyOptions& options, std::int64_t width, std::shared_ptr<ValueTable> shared = nullptr);

  /// x: [..., width] -> [..., width]. mask: rows of x that are padding, which batch norm leaves out. Fills `trace`, if
  /// one is given. The query norm `batch`, the default, needs two rows or more on a training tape and throws ShapeError
  /// for one; the others take any number.
  Variable forward(const Variable& x, const RowMask& mask = {}, MemoryTrace* trace = nullptr);
  void visit(Visitor& visit) override;

 private:
  Variable read_values(const Variable& x, const Variable& read);

  ProductKeyOptions options_;
  QueryNetwork query_;
  Parameter keys_;  // [H, F, n, dq / F]; flat: [H, 1, N, dq]
  std::shared_ptr<ValueTable> values_;
  std::optional<Linear> gate_;    // swish: W1, [dv, width]; scalar: u, [1, width]
  std::optional<Linear> output_;  // swish: W2; projection: [width, dv]
};

/// The tables of a model's memories: makes a memory for each layer that has one.
class MemoryMaker {
 public:
  MemoryMaker(const ProductKeyOptions& options, std::int64_t width, std::int64_t model_layers);
  /// The memory of a layer, the first being 0; nullptr where it has none.
  std::unique_ptr<ProductKeyMemory> make(std::int64_t layer) const;

 private:
  ProductKeyOptions options_;
  std::int64_t width_;
  std::vector<std::int64_t> layers_;
  std::shared_ptr<ValueTable> shared_;
};

}  // namespace engram
