/// The running statistics of a batch norm as buffers of a model: counted, saved and changed as such.

#include "nn/layers/batch_norm.hpp"

#include "nn/layers/linear.hpp"
#include "nn/optim/make_optimizer.hpp"
#include "nn/optim/named_tensors.hpp"
#include "nn/optim/weight_average.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/nn/placed_model.hpp"
#include "tests/reference/normalisations.hpp"

namespace engram::harness::batch_norm_test {
namespace {

struct Net final : Module {
  Linear map;
  BatchNorm norm;

  Net() : map(3, 4), norm(4) {}
  Variable forward(const Variable& x) { return norm.forward(map.forward(x)); }
  void visit(Visitor& visit) override {
    visit("map", map);
    visit("norm", norm);
  }
};

struct NetBench : Bench {
  ParameterStore store;  // before the net, whose memory it owns
  Net net;
  DType dtype;

  explicit NetBench(DType type = DType::f64, std::uint64_t seed = 5) : dtype(type) {
    collect(net, store);
    store.place(*backend, type, seed);
  }
  reference::Array64 value(const char* name) { return read(store.find(name)->value()); }
  std::vector<NamedTensor> tensors() const { return named_tensors(store); }
  reference::Array64 infer(const reference::Array64& x) {
    Tape tape(step, Tape::Mode::inference);
    return read(net.forward(tape.constant(tensor(x, dtype))).value());
  }
  void accumulate(const reference::Array64& x, const reference::Array64& cotangent) {
    store.zero_gradients(step);
    Tape tape(step);
    const Variable y = net.forward(tape.constant(tensor(x, dtype)));
    tape.backward(y, tensor(cotangent, dtype));
  }
};

std::unique_ptr<Optimizer> optimizer_of(OptimizerKind kind, ParameterStore& store, Step& step) {
  OptimizerOptions options;
  options.kind = kind;
  if (kind != OptimizerKind::adagrad) {
    options.clip_kind = ClipKind::global;
    options.weight_decay = kind == OptimizerKind::adam ? 0.5 : 0;
  }
  return make_optimizer(options, store, step);
}

TEST_CASE("batch norm layer: buffers are named, start as they should and do not count") {
  NetBench bench;
  CHECK(bench.store.count() == 3 * 4 + 4 + 4 + 4);
  CHECK(bench.store.parameters().size() == 6);
  CHECK(bench.value("norm.gain").data == std::vector<double>(4, 1));
  CHECK(bench.value("norm.bias").data == std::vector<double>(4, 0));
  CHECK(bench.value("norm.running_mean").data == std::vector<double>(4, 0));
  CHECK(bench.value("norm.running_variance").data == std::vector<double>(4, 1));
  CHECK(bench.store.find("norm.running_mean")->gradient_kind() == Gradient::none);
  for (const ParameterGroup& group : bench.store.groups())
    for (const Parameter* parameter : group.parameters) CHECK(parameter->name().find("running") == std::string::npos);
  // Before any training they are in use.
  const reference::Array64 x = reference::fill(1, {1, 3});
  const reference::Array64 mapped = reference::array({1, 4}, [&] {
    Tape tape(bench.step, Tape::Mode::inference);
    return bench.read(bench.net.map.forward(tape.constant(bench.tensor(x))).value()).data;
  }());
  CHECK(largest_difference(bench.infer(x),
                           reference::batch_norm_inference(mapped, bench.value("norm.gain"), bench.value("norm.bias"),
                                                           bench.value("norm.running_mean"),
                                                           bench.value("norm.running_variance"), {})) < 1e-14);
}

TEST_CASE("batch norm layer: training changes the buffers, optimisers and averages do not") {
  reference::RandomArrays random(3);
  for (const OptimizerKind kind : {OptimizerKind::adagrad, OptimizerKind::adam, OptimizerKind::sgd}) {
    NetBench bench;
    const auto optimizer = optimizer_of(kind, bench.store, bench.step);
    const auto buffers = [&] {
      return std::vector{bench.value("norm.running_mean").data, bench.value("norm.running_variance").data};
    };
    WeightAverage average(bench.store);
    average.start(bench.step);
    auto before = buffers();
    for (int step = 0; step < 3; ++step) {
      bench.accumulate(random.array({6, 3}), random.array({6, 4}));
      const auto trained = buffers();
      CHECK(trained != before);
      before = trained;
      bench.step.begin({.step = static_cast<std::uint64_t>(step), .piece = 0, .learning_rate = 0.1f});
      optimizer->update(bench.step);
      average.add(bench.step);
      bench.infer(random.array({2, 3}));
      CHECK(buffers() == before);
    }
    average.swap(bench.step);
    CHECK(buffers() == before);
    average.swap(bench.step);
    CHECK(buffers() == before);
    const auto no_buffer = [](const std::string& name, const Tensor&, const auto&...) {
      CHECK(name.find("running") == std::string::npos);
    };
    optimizer->visit_state(no_buffer);
    average.visit_state(no_buffer);
    CHECK(optimizer->gradient_norms(*bench.backend).size() == 4);
  }
}

TEST_CASE("batch norm layer: the running statistics survive saving and loading") {
  reference::RandomArrays random(4);
  TemporaryFolder folder;
  const reference::Array64 x = random.array({5, 3});
  for (const DType dtype : {DType::f64, DType::f32}) {
    NetBench trained(dtype);
    for (int step = 0; step < 3; ++step) trained.accumulate(random.array({6, 3}, 2), random.array({6, 4}));
    CHECK(trained.value("norm.running_mean").data != std::vector<double>(4, 0));
    CHECK(trained.value("norm.running_variance").data != std::vector<double>(4, 1));
    save_checkpoint(folder / "model.safetensors", *trained.backend, trained.tensors(), {});
    NetBench loaded(dtype, 6);
    CHECK(loaded.infer(x).data != trained.infer(x).data);
    CheckpointFile(folder / "model.safetensors").load(*loaded.backend, loaded.tensors());
    CHECK(loaded.value("norm.running_mean").data == trained.value("norm.running_mean").data);
    CHECK(loaded.value("norm.running_variance").data == trained.value("norm.running_variance").data);
    CHECK(loaded.infer(x).data == trained.infer(x).data);
  }
}

TEST_CASE("batch norm layer: what it refuses") {
  CHECK_THROWS_WITH(BatchNorm(0), "batch norm: width must be at least 1, got 0");
  CHECK_THROWS_WITH(BatchNorm(3, {.epsilon = 0}), "batch norm: epsilon must be above 0, got 0");
  CHECK_THROWS_WITH(BatchNorm(3, {.momentum = 1.5}), "batch norm: momentum must be from 0 to 1, got 1.5");
  NetBench bench;
  CHECK_THROWS_AS(bench.accumulate(reference::fill(1, {1, 3}), reference::fill(1, {1, 4})), ShapeError);
  CHECK(bench.value("norm.running_mean").data == std::vector<double>(4, 0));
}

}  // namespace
}  // namespace engram::harness::batch_norm_test
