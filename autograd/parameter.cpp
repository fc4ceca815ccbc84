#include "autograd/parameter.hpp"

#include <utility>

#include "autograd/parameter_store.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

[[noreturn]] void throw_without_memory(const std::string& name, const Shape& shape) {
  if (name.empty())
    throw Error(text("parameter: one of shape ", shape, " was never visited\n  add it to visit() of its module"));
  throw Error(text("parameter: ", name, " has no memory yet\n  place its ParameterStore before using it"));
}

}  // namespace

Parameter::~Parameter() {
  if (store_ != nullptr) store_->forget(*this);
}

const Tensor& Parameter::value() const {
  if (mapped_)
    throw Error(text("parameter: ", name_, " is in the file '", mapped_->path().string(),
                     "', where inference reads its rows; it has no values in memory"));
  if (!value_) throw_without_memory(name_, shape_);
  return value_;
}

TableColumns Parameter::columns() const {
  if (shared_by_ == nullptr) return TableColumns::all(shape_.rank() == 0 ? 1 : shape_[-1]);
  const std::int64_t whole = shape_[-1];
  const std::int64_t count = whole / shared_by_->size();
  return {.begin = shared_by_->rank() * count, .count = count, .whole = whole};
}

std::optional<Division> Parameter::division() const {
  if (shared_by_ == nullptr) return std::nullopt;
  return in_columns(shared_by_->size(), shape_, value().dtype());
}

const Tensor& Parameter::gradient() const {
  if (kind_ != Gradient::dense)
    throw Error(text("parameter: only a dense one has a gradient tensor, ", name_, " has ",
                     kind_ == Gradient::rows ? "a gradient of rows" : "none"));
  if (frozen_) throw Error(text("parameter: one that is frozen has no gradient, got ", name_));
  if (!gradient_) throw_without_memory(name_, shape_);
  return gradient_;
}

const RowGradient& Parameter::row_gradient() const {
  if (kind_ != Gradient::rows) throw Error(text("parameter: only a table has a gradient of rows, ", name_, " is none"));
  return row_gradient_;
}

RowGradient& Parameter::row_gradient() { return const_cast<RowGradient&>(std::as_const(*this).row_gradient()); }

const Tensor& Parameter::value_for(ActivationPrecision activations) const {
  if (activations == ActivationPrecision::f32 || !is_matrix() || !value_) return value();
  if (!rounded_)
    throw Error(text("parameter: ", name_, " must have a bf16 copy for bf16 activations, got none",
                     "\n  its store makes one: ParameterStore::keep_rounded"));
  return rounded_;
}

}  // namespace engram
