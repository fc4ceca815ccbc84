/// What a model and its optimiser are saved as: everything, and enough to go on to the same bits.

#include "nn/optim/named_tensors.hpp"

#include "nn/layers/batch_norm.hpp"
#include "nn/layers/linear.hpp"
#include "nn/layers/product_key_memory.hpp"
#include "nn/optim/make_optimizer.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::named_tensors_test {
namespace {

ProductKeyOptions options_of_memory() {
  return {.subkeys = 4, .heads = 1, .selected = 3, .query_width = 4, .query_norm = QueryNorm::batch};
}

/// A matrix that is frozen, a table, and running statistics.
struct Net final : Module {
  Linear map{3, 6};
  ProductKeyMemory memory{options_of_memory(), 6};

  Variable forward(const Variable& x) { return memory.forward(map.forward(x)); }
  void visit(Visitor& visit) override {
    visit("map", map);
    visit("memory", memory);
  }
};

struct Training : Bench {
  ParameterStore store;  // before the net, whose memory it owns
  Net net;
  std::unique_ptr<Optimizer> optimizer;

  explicit Training(std::uint64_t seed, TableMode mode = TableMode::lazy) {
    collect(net, store);
    store.freeze("map.weight");
    store.place(*backend, DType::f32, seed);
    OptimizerOptions rule;
    rule.kind = OptimizerKind::adam;
    rule.clip_kind = ClipKind::global;
    rule.tables.rate = 0.01;
    rule.tables.mode = mode;
    rule.tables.epsilon = 0;
    optimizer = make_optimizer(rule, store, step);
  }
  void update(std::uint64_t number) {
    reference::RandomArrays random(number);
    const Tensor x = tensor(random.array({5, 3}), DType::f32), dy = tensor(random.array({5, 6}), DType::f32);
    step.begin({.step = number, .learning_rate = 0.01});
    store.zero_gradients(step);
    {
      Tape tape(step);
      tape.backward(net.forward(tape.constant(x)), dy);
    }
    optimizer->update(step);
  }
  std::vector<std::vector<double>> numbers(const std::vector<NamedTensor>& tensors) {
    std::vector<std::vector<double>> all;
    for (const NamedTensor& named : tensors) all.push_back(read(named.tensor).data);
    return all;
  }
  std::vector<std::vector<double>> numbers() { return numbers(named_tensors(store, *optimizer)); }
};

std::vector<std::string> names_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& named : tensors) names.push_back(named.name);
  return names;
}

TEST_CASE("named tensors: parameters, frozen ones, tables and buffers, with an optimiser its state") {
  Training training(1);
  const std::vector<std::string> model{"map.bias",
                                       "map.weight",
                                       "memory.keys",
                                       "memory.query.layers.0.bias",
                                       "memory.query.layers.0.weight",
                                       "memory.query.norm.bias",
                                       "memory.query.norm.gain",
                                       "memory.query.norm.running_mean",
                                       "memory.query.norm.running_variance",
                                       "memory.values.rows"};
  CHECK(names_of(named_tensors(training.store)) == model);
  const std::vector<std::string> all = names_of(named_tensors(training.store, *training.optimizer));
  CHECK(std::vector(all.begin(), all.begin() + std::ssize(model)) == model);
  // Two moments of everything that is trained: not of what is frozen, nor of the two buffers.
  CHECK(all.size() == model.size() + 2 * (model.size() - 3));
  for (auto name = all.begin() + std::ssize(model); name != all.end(); ++name) CHECK(name->starts_with("optimizer/"));

  ParameterStore empty;
  Parameter alone({2}, Initializer{});
  empty.add("alone", alone);
  CHECK_THROWS_WITH(named_tensors(empty), ContainsSubstring("alone"));
}

TEST_CASE("named tensors: a training that is saved and loaded goes on to the same bits") {
  const TableMode mode = GENERATE(TableMode::lazy, TableMode::deferred);
  TemporaryFolder folder;
  const auto path = folder / "training.safetensors";
  Training whole(1, mode), resumed(2, mode);
  for (std::uint64_t number = 0; number < 3; ++number) whole.update(number);
  whole.optimizer->bring_up_to_date(whole.step);
  save_checkpoint(path, *whole.backend, named_tensors(whole.store, *whole.optimizer), {});
  const std::vector<std::vector<double>> weights = whole.numbers(named_tensors(whole.store));
  CHECK(resumed.numbers() != whole.numbers());
  const CheckpointFile file(path);
  file.load(*resumed.backend, named_tensors(resumed.store, *resumed.optimizer));
  CHECK(resumed.numbers() == whole.numbers());
  for (std::uint64_t number = 3; number < 6; ++number) {
    whole.update(number);
    resumed.update(number);
  }
  whole.optimizer->bring_up_to_date(whole.step);
  resumed.optimizer->bring_up_to_date(resumed.step);
  CHECK(resumed.numbers() == whole.numbers());

  // The weights alone, of the same file: those before the last three updates.
  Training used(3, mode);
  CHECK_THROWS_WITH(file.load(*used.backend, named_tensors(used.store)), ContainsSubstring("extra: optimizer/"));
  file.load(*used.backend, named_tensors(used.store), {.may_be_ignored = {std::string(kOptimizerPrefix)}});
  CHECK(used.numbers(named_tensors(used.store)) == weights);
  CHECK(whole.numbers(named_tensors(whole.store)) != weights);
}

}  // namespace
}  // namespace engram::harness::named_tensors_test
