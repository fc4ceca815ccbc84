#pragma once
/// The tape of step 4, also used in step 5: an object, and its gradients are targets that say set or add.

#include <memory>
#include <vector>

#include "apps/tour/loops.hpp"
#include "core/allocator.hpp"
#include "core/target.hpp"

namespace engram::tour {

class TargetTape;

struct TargetNode {
  virtual ~TargetNode() = default;
  virtual void backward(TargetTape& tape, const Tensor& dy) = 0;
};

struct TargetVariable {
  Tensor value;
  TargetTape* tape;
  std::size_t slot;
};

class TargetTape {
 public:
  explicit TargetTape(Allocator& memory) : memory_(&memory) {}

  Tensor empty(Shape shape) { return Tensor(shape, DType::f64, {DeviceKind::cpu}, *memory_); }
  TargetVariable record(Tensor value, std::unique_ptr<TargetNode> node) {
    slots_.push_back({value.shape(), std::move(node), {}});
    return {std::move(value), this, slots_.size() - 1};
  }
  /// The first target of a value says set, every further one add.
  Target target(std::size_t slot) {
    Tensor& gradient = slots_[slot].gradient;
    const Write write = gradient ? Write::add : Write::set;
    if (!gradient) gradient = empty(slots_[slot].shape);
    ++(write == Write::set ? sets : adds);
    return {gradient, write};
  }
  void backward(const TargetVariable& loss) {
    const Target seed = target(loss.slot);
    fill(seed.tensor, 1, seed.write);
    for (std::size_t place = loss.slot + 1; place-- > 0;) {
      Slot& slot = slots_[place];
      if (!slot.node) continue;
      if (slot.gradient) slot.node->backward(*this, slot.gradient);
      slot = {};
    }
  }
  const Tensor& gradient(const TargetVariable& leaf) const { return slots_[leaf.slot].gradient; }

  int sets = 0;  ///< targets given out so far
  int adds = 0;

 private:
  struct Slot {
    Shape shape;
    std::unique_ptr<TargetNode> node;
    Tensor gradient;
  };
  Allocator* memory_;
  std::vector<Slot> slots_;
};

struct TargetMatmul final : TargetNode {
  TargetVariable a, b;
  TargetMatmul(TargetVariable left, TargetVariable right) : a(std::move(left)), b(std::move(right)) {}
  void backward(TargetTape& tape, const Tensor& dy) override {
    const Target da = tape.target(a.slot);
    multiply(dy, Transpose::no, b.value, Transpose::yes, da.tensor, da.write);
    const Target db = tape.target(b.slot);
    multiply(a.value, Transpose::yes, dy, Transpose::no, db.tensor, db.write);
  }
};
struct TargetAdd final : TargetNode {
  std::size_t a, b;
  TargetAdd(std::size_t left, std::size_t right) : a(left), b(right) {}
  void backward(TargetTape& tape, const Tensor& dy) override {
    for (const std::size_t slot : {a, b}) {
      const Target dx = tape.target(slot);
      copy(dy, dx.tensor, dx.write);
    }
  }
};
struct TargetTanh final : TargetNode {
  std::size_t x;
  Tensor y;
  TargetTanh(std::size_t input, Tensor output) : x(input), y(std::move(output)) {}
  void backward(TargetTape& tape, const Tensor& dy) override {
    const Target dx = tape.target(x);
    tanh_backward(y, dy, dx.tensor, dx.write);
  }
};
struct TargetSum final : TargetNode {
  std::size_t x;
  explicit TargetSum(std::size_t input) : x(input) {}
  void backward(TargetTape& tape, const Tensor& dy) override {
    const Target dx = tape.target(x);
    fill(dx.tensor, dy.data<double>()[0], dx.write);
  }
};

inline TargetVariable matmul(const TargetVariable& a, const TargetVariable& b) {
  Tensor y = a.tape->empty({a.value.shape()[0], b.value.shape()[1]});
  multiply(a.value, Transpose::no, b.value, Transpose::no, y, Write::set);
  return a.tape->record(y, std::make_unique<TargetMatmul>(a, b));
}
inline TargetVariable add(const TargetVariable& a, const TargetVariable& b) {
  Tensor y = a.tape->empty(a.value.shape());
  copy(a.value, y, Write::set);
  copy(b.value, y, Write::add);
  return a.tape->record(y, std::make_unique<TargetAdd>(a.slot, b.slot));
}
inline TargetVariable tanh(const TargetVariable& x) {
  Tensor y = x.tape->empty(x.value.shape());
  tanh_forward(x.value, y);
  return x.tape->record(y, std::make_unique<TargetTanh>(x.slot, y));
}
inline TargetVariable sum(const TargetVariable& x) {
  Tensor y = x.tape->empty({1});
  sum_forward(x.value, y);
  return x.tape->record(y, std::make_unique<TargetSum>(x.slot));
}

}  // namespace engram::tour
