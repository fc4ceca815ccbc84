#pragma once
/// A tensor of a model that outlives its steps. Most are trained, and their values and gradients live in the flat
/// blocks of a ParameterStore, and so does the bf16 copy of a matrix that steps with bf16 activations read. Tables
/// whose rows are looked up have gradients of rows, and buffers, which a model keeps beside what is trained, have none.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "autograd/initializer.hpp"
#include "autograd/row_gradient.hpp"
#include "core/activation_precision.hpp"
#include "core/communicator.hpp"
#include "core/division.hpp"
#include "core/files/mapped_table.hpp"
#include "core/rules/table_columns.hpp"
#include "core/tensor.hpp"

namespace engram {

class Parameter;
class ParameterStore;
class Step;

/// Brings rows of a table up to date that an optimiser has left behind: see TableOptimizer.
class RowRefresh {
 public:
  virtual ~RowRefresh() = default;
  /// ids: i64, any shape; a row may be there several times.
  virtual void refresh(Step& step, const Parameter& table, const Tensor& ids) = 0;
};

/// What the gradient of a parameter is.
enum class Gradient : std::uint8_t {
  dense,  ///< a tensor of its shape
  rows,   ///< of a table [rows, width]: what was read of it (RowGradient)
  none    ///< it is a buffer: the model changes it, no optimiser does, and it does not count as a trained value
};

class Parameter {
 public:
  /// No memory yet: a parameter gets it when its store is placed. `group` names the parameters that an optimiser
  /// treats alike ("weights", "spans", ...).
  Parameter(Shape shape, Initializer initializer, std::string_view group = "weights")
      : shape_(shape), initializer_(initializer), group_(group) {}
  /// A table or a buffer: these have memory of their own, outside of any group. `stored`: their dtype, if it is not
  /// that of the store, f32 or bf16.
  Parameter(Shape shape, Initializer initializer, Gradient gradient, std::optional<DType> stored = {})
      : shape_(shape), initializer_(initializer), kind_(gradient), stored_(stored) {}
  Parameter(const Parameter&) = delete;  // it has one identity: the tape and the store point at it
  Parameter& operator=(const Parameter&) = delete;
  /// Only before it is registered in a store.
  Parameter(Parameter&&) = default;
  Parameter& operator=(Parameter&&) = default;
  ~Parameter();

  /// Of the whole of it, also where ranks share its columns.
  const Shape& shape() const { return shape_; }
  const Initializer& initializer() const { return initializer_; }
  /// "" for tables and buffers.
  const std::string& group() const { return group_; }
  Gradient gradient_kind() const { return kind_; }
  /// Whether its store keeps it from training (ParameterStore::freeze): it has values and no gradient, and tapes take
  /// it for a constant. Of a buffer: it stays as it is.
  bool frozen() const { return frozen_; }
  /// The path it was visited under, "" before.
  const std::string& name() const { return name_; }
  /// The dtype of its values in a store of `placed` ones: f32 or bf16 of what is stored so, else that.
  DType stored_dtype(DType placed) const { return stored_.value_or(placed); }
  /// Throws Error when the parameter was never visited and so has no memory, and for a mapped table. Of a table whose
  /// columns ranks share, those that this one has: [rows, columns().count].
  const Tensor& value() const;
  /// The ranks that share the columns of a table that was placed so; nullptr: all of it is here.
  Communicator* shared_by() const { return shared_by_; }
  /// Of a table: which columns value() has.
  TableColumns columns() const;
  /// How value() and tensors like it are divided over the ranks, if they are.
  std::optional<Division> division() const;
  /// The file in which a table is that was placed there; nullptr: its values are in memory. Such a table cannot be
  /// changed: lookups of inference are all that can be done with it (weighted_rows).
  const MappedTable* mapped() const { return mapped_.get(); }
  /// Gradient::dense only: throws Error for the others, and where it is frozen.
  const Tensor& gradient() const;
  /// Gradient::rows only: throws Error for the others.
  RowGradient& row_gradient();
  const RowGradient& row_gradient() const;
  /// Before a step of training reads these rows of a table. Without effect where no optimiser asked for it.
  void refresh_rows(Step& step, const Tensor& ids) const {
    if (row_refresh_ != nullptr) row_refresh_->refresh(step, *this, ids);
  }
  /// Not owned; nullptr: rows are always up to date.
  void set_row_refresh(RowRefresh* refresh) { row_refresh_ = refresh; }
  RowRefresh* row_refresh() const { return row_refresh_; }
  /// What a step reads: the value, or, with bf16 activations, the bf16 copy of a dense matrix (two axes or more).
  /// Throws Error as value() does, and when the store keeps no copies.
  const Tensor& value_for(ActivationPrecision activations) const;
  bool is_matrix() const { return kind_ == Gradient::dense && shape_.rank() >= 2; }
  bool placed() const { return value_ || mapped_ != nullptr; }

 private:
  friend class ParameterStore;
  Shape shape_;
  Initializer initializer_;
  std::string group_;
  Gradient kind_ = Gradient::dense;
  bool frozen_ = false;
  std::optional<DType> stored_;
  std::string name_;
  Tensor value_;
  std::unique_ptr<const MappedTable> mapped_;
  Tensor gradient_;
  RowGradient row_gradient_;
  RowRefresh* row_refresh_ = nullptr;
  Tensor rounded_;  // bf16
  Communicator* shared_by_ = nullptr;
  ParameterStore* store_ = nullptr;  // owns the memory; whichever goes first tells the other
};

}  // namespace engram
