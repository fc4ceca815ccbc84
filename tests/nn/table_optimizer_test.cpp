/// The optimiser of tables over a parameter store: rate, clip, state, and going on from a checkpoint.

#include "nn/optim/table_optimizer.hpp"

#include <cmath>

#include "nn/optim/make_optimizer.hpp"
#include "nn/optim/named_tensors.hpp"
#include "nn/optim/weight_average.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/row_uses_on_host.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/nn/placed_model.hpp"
#include "tests/reference/optimizers.hpp"
#include "tests/reference/table_optimizers.hpp"

namespace engram::harness::table_optimizer_test {
namespace {

constexpr TableMode kModes[] = {TableMode::dense, TableMode::lazy, TableMode::row_step, TableMode::deferred};

OptimizerOptions with_tables(const TableOptimizerOptions& tables) {
  OptimizerOptions options;
  options.kind = OptimizerKind::sgd;
  options.clip_kind = ClipKind::global;
  options.tables = tables;
  return options;
}

struct TableBench : Bench {
  ParameterStore store;  // before the parameters, whose memory it owns
  Parameter dense{{3}, Initializer{Initializer::Kind::constant, 1}};
  Parameter first{{20, 6}, Initializer{Initializer::Kind::normal, 1}, Gradient::rows};
  Parameter second{{9, 3}, Initializer{Initializer::Kind::normal, 1}, Gradient::rows};
  std::unique_ptr<Optimizer> optimizer;
  reference::RandomArrays random{41};
  std::int64_t updates = 0;

  explicit TableBench(const OptimizerOptions& options, DType dtype = DType::f64) {
    store.add("dense", dense);
    store.add("first", first);
    store.add("second", second);
    store.place(*backend, dtype, 5);
    optimizer = make_optimizer(options, store, step);
    store.zero_gradients(step);
  }
  RowUsesOnHost give(Parameter& table, double factor = 1) {
    RowUsesOnHost uses{{}, random.array({2, 3}).data, random.array({2, table.shape()[1]}, factor)};
    for (int p = 0; p < 6; ++p) uses.ids.push_back(random.below(table.shape()[0]));
    give(table, uses);
    return uses;
  }
  void give(Parameter& table, const RowUsesOnHost& uses) {
    RowGradients gradients = row_gradients(*backend, heap, uses, table.shape()[0], table.value().dtype());
    table.row_gradient().parts.push_back({std::move(gradients.uses), std::move(gradients.order)});
  }
  void update(double rate = 0.125) {
    step.begin({.step = static_cast<std::uint64_t>(updates++), .learning_rate = rate});
    optimizer->update(step);
  }
  std::vector<NamedTensor> everything() const { return named_tensors(store, *optimizer); }
  std::vector<std::vector<double>> numbers() {
    std::vector<std::vector<double>> all;
    for (const NamedTensor& named : everything()) all.push_back(read(named.tensor).data);
    return all;
  }
};

TEST_CASE("tables: all of them are clipped together, and nothing else with them") {
  for (const double clip : {0.0, 0.5, 1e6}) {
    OptimizerOptions options = with_tables({.rate = 0.25, .clip = clip});
    options.clip = 1e-3;  // of the others
    TableBench bench(options);
    reference::Array64 values[2] = {bench.read(bench.first.value()), bench.read(bench.second.value())};
    reference::Array64 m[2], v[2];
    std::vector<std::int64_t> unused(20);
    for (int table = 0; table < 2; ++table) m[table] = v[table] = reference::zeros(values[table].shape);
    for (std::int64_t t = 1; t <= 4; ++t) {
      bench.write(bench.dense.gradient(), reference::constant(100, {3}));
      std::vector<reference::TableGradient> gradients;
      for (Parameter* table : {&bench.first, &bench.second}) {
        const RowUsesOnHost uses = bench.give(*table, 3);
        gradients.push_back(reference::table_gradient(table->shape()[0], uses.ids, uses.weights, uses.sources));
      }
      bench.update();
      std::vector<reference::Array64> sums{gradients[0].sums, gradients[1].sums};
      const double norm = reference::clip_global(sums, clip);
      CHECK(norm > 0.5);
      for (std::size_t table = 0; table < 2; ++table) {
        gradients[table].sums = sums[table];
        reference::table_adam(values[table], gradients[table], m[table], v[table], unused, t,
                              reference::MovedRows::touched, {.rate = 0.25});
      }
    }
    CHECK(largest_difference(bench.read(bench.first.value()), values[0]) < 1e-12);
    CHECK(largest_difference(bench.read(bench.second.value()), values[1]) < 1e-12);
    CHECK(bench.read(bench.dense.value()).data[0] == Approx(1 - 4 * 0.125 * 1e-3 / std::sqrt(3)).epsilon(1e-6));
  }
}

TEST_CASE("tables: the rate is constant, or follows the schedule") {
  const auto moved = [](bool follows) {
    TableBench bench(with_tables({.rate = 0.25, .follows_schedule = follows, .schedule_rate = 0.5, .epsilon = 0}));
    const double before = bench.read(bench.second.value()).at(4, 0);
    bench.give(bench.second, {{4}, {1}, reference::constant(1, {1, 3})});
    bench.update(0.125);  // a quarter of the schedule's
    return before - bench.read(bench.second.value()).at(4, 0);
  };
  CHECK(moved(false) == Approx(0.25).epsilon(1e-12));
  CHECK(moved(true) == Approx(0.0625).epsilon(1e-12));
}

TEST_CASE("tables: Adam adds epsilon to the root that the options say") {
  for (const EpsilonAt at : {EpsilonAt::corrected, EpsilonAt::uncorrected}) {
    TableBench bench(with_tables({.rate = 0.07, .epsilon = 0.01, .epsilon_at = at}));
    reference::Array64 value = bench.read(bench.second.value()), m = reference::zeros(value.shape), v = m;
    std::vector<std::int64_t> unused(9);
    for (std::int64_t t = 1; t <= 4; ++t) {
      const RowUsesOnHost uses = bench.give(bench.second);
      bench.update();
      reference::table_adam(value, reference::table_gradient(9, uses.ids, uses.weights, uses.sources), m, v, unused, t,
                            reference::MovedRows::touched,
                            {.rate = 0.07, .epsilon = 0.01, .corrected_root = at == EpsilonAt::corrected});
    }
    CHECK(largest_difference(bench.read(bench.second.value()), value) < 1e-13);
  }
}

TEST_CASE("tables: one that nobody read stays in the lazy mode and moves on in the dense one") {
  for (const TableMode mode : {TableMode::lazy, TableMode::dense}) {
    TableBench bench(with_tables({.mode = mode}));
    bench.give(bench.first);
    bench.give(bench.second);
    bench.update();
    const std::vector<double> before = bench.read(bench.second.value()).data;
    bench.give(bench.first);
    bench.update();
    CHECK((bench.read(bench.second.value()).data == before) == (mode == TableMode::lazy));
    // The number of all steps goes on: the next gradient is corrected as that of step 3.
    const RowUsesOnHost uses = bench.give(bench.second);
    bench.update();
    CHECK(bench.read(bench.second.value()).data != before);
  }
}

TEST_CASE("tables: without uses in a step there is no gradient") {
  TableBench bench(with_tables({.clip = 1}));
  const std::vector<double> before = bench.read(bench.first.value()).data;
  bench.give(bench.first, {{}, {}, reference::Array64{{1, 6}, std::vector<double>(6)}});
  bench.update();
  CHECK(bench.read(bench.first.value()).data == before);
}

TEST_CASE("tables: deferred rows are those of the dense mode when they are read") {
  TableBench dense(with_tables({.mode = TableMode::dense, .epsilon = 0}));
  TableBench deferred(with_tables({.mode = TableMode::deferred, .epsilon = 0}));
  for (int t = 0; t < 30; ++t) {
    const RowUsesOnHost uses = dense.give(dense.first);
    deferred.give(deferred.first, uses);
    if (t % 3 == 0) deferred.give(deferred.second, dense.give(dense.second));
    dense.update();
    deferred.update();
  }
  const Tensor ids = copied_to(*deferred.backend, deferred.heap, std::vector<std::int64_t>{7, 2, 7, 7}, {2, 2});
  deferred.optimizer->tables()->refresh(deferred.step, deferred.first, ids);
  for (const std::int64_t row : {2, 7})
    CHECK(deferred.read(deferred.first.value()).at(row, 1) ==
          Approx(dense.read(dense.first.value()).at(row, 1)).epsilon(1e-12));
  deferred.optimizer->bring_up_to_date(deferred.step);
  CHECK(largest_difference(deferred.read(deferred.first.value()), dense.read(dense.first.value())) < 1e-12);
  CHECK(largest_difference(deferred.read(deferred.second.value()), dense.read(dense.second.value())) < 1e-12);
  Parameter other({1, 1}, Initializer{Initializer::Kind::constant, 1}, Gradient::rows);
  CHECK_THROWS_AS(deferred.optimizer->tables()->refresh(deferred.step, other, ids), Error);
}

TEST_CASE("tables: a run goes on from a checkpoint as if nothing had happened") {
  TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  std::vector<TableOptimizerOptions> cases;
  for (const TableMode mode : kModes) cases.push_back({.mode = mode, .epsilon = 0, .clip = 0.75});
  cases.push_back({.kind = TableKind::row_adagrad});
  for (const TableOptimizerOptions& options : cases)
    for (const DType dtype : {DType::f64, DType::f32}) {
      CAPTURE(int(options.kind), int(options.mode));
      TableBench whole(with_tables(options), dtype), resumed(with_tables(options), dtype);
      std::vector<RowUsesOnHost> late;
      for (int t = 0; t < 8; ++t) {
        if (t == 5) {
          whole.optimizer->bring_up_to_date(whole.step);
          save_checkpoint(path, *whole.backend, whole.everything(), {});
        }
        const RowUsesOnHost uses = whole.give(whole.first);
        if (t >= 5) late.push_back(uses);
        whole.update();
      }
      CheckpointFile(path).load(*resumed.backend, resumed.everything());
      resumed.updates = 5;
      for (const RowUsesOnHost& uses : late) {
        resumed.give(resumed.first, uses);
        resumed.update();
      }
      whole.optimizer->bring_up_to_date(whole.step);
      resumed.optimizer->bring_up_to_date(resumed.step);
      CHECK(resumed.numbers() == whole.numbers());
    }
}

TEST_CASE("tables: the step that used a row last is kept in every mode, and changes no update") {
  TableOptimizerOptions options =
      GENERATE(TableOptimizerOptions{}, TableOptimizerOptions{.mode = TableMode::dense, .clip = 0.1},
               TableOptimizerOptions{.mode = TableMode::deferred, .epsilon = 0},
               TableOptimizerOptions{.kind = TableKind::row_adagrad});
  TableBench without(with_tables(options));
  options.last_use = true;
  TableBench with(with_tables(options));
  std::vector<double> wanted(20);
  for (int t = 1; t <= 6; ++t) {
    if (t != 4) {  // nothing is read in the fourth
      const RowUsesOnHost uses = with.give(with.first);
      without.give(without.first, uses);
      for (const auto id : uses.ids) wanted[static_cast<std::size_t>(id)] = t;
    }
    with.update();
    without.update();
    for (const NamedTensor& named : with.everything()) {
      if (named.name == "optimizer/first.last_use") CHECK(with.read(named.tensor).data == wanted);
      if (named.name == "optimizer/second.last_use") CHECK(with.read(named.tensor).data == std::vector<double>(9));
    }
  }
  CHECK(with.read(with.first.value()).data == without.read(without.first.value()).data);
}

TEST_CASE("tables: the state of one mode is refused by another") {
  const auto names = [](const TableOptimizerOptions& options) {
    TableBench bench(with_tables(options));
    std::vector<std::string> found;
    bench.optimizer->visit_state([&](const std::string& name, const Tensor&, const auto&) {
      if (name.starts_with("second")) found.push_back(name);
    });
    return found;
  };
  using Names = std::vector<std::string>;
  CHECK(names({}) == Names{"second.first_moment", "second.second_moment"});
  CHECK(names({.mode = TableMode::row_step}) == Names{"second.first_moment", "second.second_moment", "second.steps"});
  CHECK(names({.mode = TableMode::deferred, .epsilon = 0}) ==
        Names{"second.first_moment", "second.second_moment", "second.last_step"});
  CHECK(names({.kind = TableKind::row_adagrad}) == Names{"second.row_sum"});
  CHECK(names({.kind = TableKind::row_adagrad, .last_use = true}) == Names{"second.last_use", "second.row_sum"});

  TemporaryFolder folder;
  const auto path = folder / "model.safetensors";
  TableBench saved(with_tables({.mode = TableMode::row_step})), other(with_tables({.kind = TableKind::row_adagrad}));
  save_checkpoint(path, *saved.backend, saved.everything(), {});
  const std::string message =
      message_of<FileError>([&] { CheckpointFile(path).load(*other.backend, other.everything()); });
  CHECK_THAT(message, ContainsSubstring("first.row_sum") && ContainsSubstring("first.steps"));
}

TEST_CASE("tables: state of bf16 tables is f32") {
  Bench bench;
  ParameterStore store;
  Parameter table{{4, 5}, Initializer{Initializer::Kind::normal, 1}, Gradient::rows, DType::bf16};
  store.add("table", table);
  store.place(*bench.backend, DType::f32, 5);
  const auto optimizer = make_optimizer(with_tables({}), store, bench.step);
  int found = 0;
  optimizer->visit_state([&](const std::string&, const Tensor& tensor, const auto&) {
    ++found;
    CHECK(tensor.dtype() == DType::f32);
  });
  CHECK(found == 2);
  // A store without groups is updated too.
  CHECK(optimizer->gradient_norms(*bench.backend).empty());
  RowGradients gradients =
      row_gradients(*bench.backend, bench.heap, {{1, 3}, {1, 1}, reference::constant(1, {1, 5})}, 4, DType::bf16);
  table.row_gradient().parts.push_back({std::move(gradients.uses), std::move(gradients.order)});
  const std::vector<double> before = bench.read(table.value()).data;
  bench.step.begin({});
  optimizer->update(bench.step);
  CHECK(bench.read(table.value()).data != before);
}

TEST_CASE("tables: an update lets their gradients go, and one that is refused does not") {
  TableBench bench(with_tables({}));
  bench.give(bench.first);
  bench.give(bench.second);
  const std::vector<std::vector<double>> before = bench.numbers();
  CHECK_THROWS_WITH(bench.optimizer->update(bench.step), ContainsSubstring("step.begin("));
  CHECK(bench.numbers() == before);
  CHECK(bench.first.row_gradient().parts.size() == 1);
  bench.update();
  CHECK(bench.numbers() != before);
  CHECK(bench.first.row_gradient().parts.empty());
  CHECK(bench.second.row_gradient().parts.empty());
}

TEST_CASE("tables: no mean is kept of them") {
  TableBench bench(with_tables({}));
  WeightAverage average(bench.store);
  CHECK_THAT(message_of<UsageError>([&] { average.start(bench.step); }), ContainsSubstring("first"));
}

TEST_CASE("tables: options that make no sense are refused by name") {
  const auto message = [](const TableOptimizerOptions& options) {
    return message_of<UsageError>([&] { with_tables(options).check(); });
  };
  CHECK_NOTHROW(with_tables({}).check());
  // What deferred leaves out is too small to count at either root.
  for (const EpsilonAt at : {EpsilonAt::corrected, EpsilonAt::uncorrected})
    CHECK_NOTHROW(with_tables({.mode = TableMode::deferred, .epsilon = 1e-12, .epsilon_at = at}).check());
  CHECK_THAT(message({.rate = -1}), ContainsSubstring("table_rate") && ContainsSubstring("-1"));
  CHECK_THAT(message({.beta1 = 1}), ContainsSubstring("table_beta1"));
  CHECK_THAT(message({.beta2 = -0.5}), ContainsSubstring("table_beta2"));
  CHECK_THAT(message({.epsilon = -1e-9}), ContainsSubstring("table_epsilon"));
  CHECK_THAT(message({.weight_decay = -1}), ContainsSubstring("table_weight_decay"));
  CHECK_THAT(message({.clip = -1}), ContainsSubstring("table_clip"));
  CHECK_THAT(message({.follows_schedule = true, .schedule_rate = 0}), ContainsSubstring("table_follows_schedule"));
  CHECK_THAT(message({.kind = TableKind::row_adagrad, .mode = TableMode::dense}), ContainsSubstring("table_mode"));
  CHECK_THAT(message({.mode = TableMode::deferred}), ContainsSubstring("table_epsilon") && ContainsSubstring("1e-12"));
  CHECK_THAT(message({.mode = TableMode::deferred, .beta1 = 0.999, .epsilon = 0}), ContainsSubstring("table_beta1"));
  CHECK_THAT(message({.mode = TableMode::deferred, .beta2 = 0, .epsilon = 0}), ContainsSubstring("table_beta1"));
  CHECK_THAT(message({.mode = TableMode::deferred, .rate = 0.5, .epsilon = 0, .weight_decay = 2}),
             ContainsSubstring("table_weight_decay"));
}

}  // namespace
}  // namespace engram::harness::table_optimizer_test
