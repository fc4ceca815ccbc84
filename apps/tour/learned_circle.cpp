/// Step 15: a network of two layers learns which points of a grid lie inside a circle.

#include <fmt/ostream.h>

#include <algorithm>
#include <utility>

#include "apps/tour/square.hpp"
#include "apps/tour/tour.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/functions.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/fill.hpp"
#include "nn/layers/linear.hpp"
#include "nn/optim/make_optimizer.hpp"

namespace engram::tour {
namespace {

constexpr std::int64_t kSide = 12, kPoints = kSide * kSide;

class CircleNet final : public Module {
 public:
  Variable forward(const Variable& points) { return outer_.forward(square(inner_.forward(points))); }
  void visit(Visitor& visit) override {
    visit("inner", inner_);
    visit("outer", outer_);
  }

 private:
  Linear inner_{2, 4}, outer_{4, 2};
};

struct Task {
  Tensor points;   // [144, 2], a grid over [-1, 1] x [-1, 1]
  Tensor labels;   // [144], 1 inside the circle
  Tensor weights;  // [144], 1 / 144: the loss is a mean
};

Task make_task(Workshop& shop) {
  const Device cpu{DeviceKind::cpu};
  Task task{Tensor({kPoints, 2}, DType::f64, cpu, shop.heap), Tensor({kPoints}, DType::i32, cpu, shop.heap),
            Tensor({kPoints}, DType::f64, cpu, shop.heap)};
  for (std::int64_t i = 0; i < kPoints; ++i) {
    const std::int64_t column = i % kSide, row = i / kSide;
    const double x = 2.0 * static_cast<double>(column) / (kSide - 1) - 1;
    const double y = 2.0 * static_cast<double>(row) / (kSide - 1) - 1;
    task.points.data<double>()[2 * i] = x;
    task.points.data<double>()[2 * i + 1] = y;
    task.labels.data<std::int32_t>()[i] = x * x + y * y < 0.6;
  }
  std::ranges::fill_n(task.weights.data<double>(), kPoints, 1.0 / kPoints);
  return task;
}

double train_once(Workshop& shop, CircleNet& net, const Task& task) {
  Tape tape(shop.step);
  Variable logits = net.forward(tape.constant(task.points));
  const CrossEntropy result = cross_entropy(std::move(logits), task.labels, task.weights);
  tape.backward({result.loss});
  return result.loss.value().data<double>()[0];
}

void draw(Workshop& shop, CircleNet& net, const Task& task, std::ostream& out) {
  Tape tape(shop.step, Tape::Mode::inference);
  const Variable logits = net.forward(tape.constant(task.points));
  const double* score = logits.value().data<double>();
  for (std::int64_t i = 0; i < kPoints; ++i)
    out << (score[2 * i + 1] > score[2 * i] ? " #" : " .") << ((i + 1) % kSide == 0 ? "\n" : "");
}

}  // namespace

void learned_circle(std::ostream& out, KernelObserver* observer) {
  Workshop shop(observer);
  const Task task = make_task(shop);
  CircleNet net;
  ParameterStore store;
  collect(net, store);
  store.place(*shop.backend, DType::f64, /*seed=*/1);
  const auto optimizer = make_optimizer({.kind = OptimizerKind::adam, .clip_kind = ClipKind::global}, store, shop.step);

  for (std::uint64_t update = 0; update <= 300; ++update) {
    shop.step.begin({.step = update, .learning_rate = 0.05f});
    store.zero_gradients(shop.step);
    const double loss = train_once(shop, net, task);
    optimizer->update(shop.step);
    shop.arena.end_step();
    if (update % 100 == 0) fmt::print(out, "update {:3}: loss {:.3f}\n", update, loss);
  }
  draw(shop, net, task, out);
}

}  // namespace engram::tour
