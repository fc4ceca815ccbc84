#include "autograd/functions/reshape.hpp"

#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct Reshape final : Node {
  std::string_view name() const override { return "reshape"; }
  void backward(Step&, Backward& pass) override { pass.pass_through({0}); }
};

}  // namespace

Variable reshape(const Variable& x, Shape shape) {
  if (shape.count() != x.shape().count())
    throw ShapeError(text("reshape: the new shape must have as many elements as ", x.shape(), ", got ", shape));
  return x.tape().record(Reshape{}, {x}, x.value().view(shape));
}

}  // namespace engram
