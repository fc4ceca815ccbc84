#include <memory>
#include <string_view>

#include "apps/studies/bench/kernel_times.hpp"
#include "apps/studies/bench/product_key_bench.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/rules/table_clock.hpp"
#include "nn/layers/product_key_memory.hpp"
#include "nn/optim/adam.hpp"
#include "nn/optim/make_optimizer.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

constexpr std::uint64_t kTrainingSeed = 1;
constexpr double kFloat = 4;  // bytes
constexpr std::int64_t kProductKeyWarmUpSteps = 2;

/// A rule of a table, and the numbers per element that its update reads and writes.
struct Rule {
  TableKind kind;
  TableMode mode;
};
constexpr Rule kRules[] = {{TableKind::adam, TableMode::lazy},
                           {TableKind::adam, TableMode::deferred},
                           {TableKind::row_adagrad, TableMode::lazy}};

OptimizerOptions options_of(const Rule& rule) {
  OptimizerOptions options;
  options.kind = OptimizerKind::adam;
  options.clip_kind = ClipKind::global;
  options.tables.kind = rule.kind;
  options.tables.mode = rule.mode;
  if (rule.mode == TableMode::deferred) options.tables.epsilon = 0;
  return options;
}

class TrainedProductKeys final : public Module {
 public:
  TrainedProductKeys(const ProductKeyBench& bench, std::int64_t slots, Runtime& runtime)
      : memory(bench.layer(slots, KeyKind::product), bench.width) {
    collect(*this, store);
    store.place(runtime.backend(), DType::f32, kTrainingSeed);
  }
  void visit(Visitor& visit) override { visit("memory", memory); }

  ProductKeyMemory memory;
  ParameterStore store;
};

/// Which rows of a table the steps used.
class UsedRows {
 public:
  explicit UsedRows(std::int64_t rows) : last_step_(static_cast<std::size_t>(rows), -1) {}

  struct Counts {
    double touched = 0, behind = 0;
  };
  /// Of step number `step`: rows that it uses, and those of them that the step before did not.
  Counts count(const Tensor& ids, std::int64_t step) {
    Counts counts;
    const auto* const rows = ids.data<const std::int64_t>();
    for (std::int64_t i = 0; i < ids.count(); ++i) {
      std::int64_t& last = last_step_[static_cast<std::size_t>(rows[i])];
      if (last == step) continue;
      counts.touched += 1;
      if (last >= 0 && last < step - 1) counts.behind += 1;
      last = step;
    }
    return counts;
  }

 private:
  std::vector<std::int64_t> last_step_;
};

/// Random numbers of a small range with a mean of 0, the same on every machine.
void fill_mixed(Tensor& tensor, std::uint32_t which) {
  auto* const numbers = tensor.data<float>();
  std::uint32_t state = 2654435769u * (which + 1);
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    numbers[i] = static_cast<float>(static_cast<double>(state >> 8) * 0x1p-23 - 1) * 1.7f;
  }
}

/// What a step must move of the tables at the least, by the rows that it touched.
void set_bytes(ProductKeyTrainingRun& run, const ProductKeyBench& bench, const Rule& rule) {
  // Read p, m, v and the gradient, write p, m and v ([product-key 7.2]); row-wise AdaGrad: read p and the gradient,
  // write p. What catches up is read and written without a gradient.
  const auto width = static_cast<double>(bench.width);
  const double value = static_cast<double>(size_of(bench.values));
  const bool adam = rule.kind == TableKind::adam;
  run.read_bytes = static_cast<double>(bench.tokens * bench.reads()) * width * value;
  run.gradient_bytes = run.touched * width * value;
  run.update_bytes = run.touched * width * (2 * value + kFloat + (adam ? 4 * kFloat : 0));
  if (rule.mode == TableMode::deferred) {
    const TableClock::Range due = TableClock::due(run.slots, 0);
    run.catch_up_bytes = (run.behind + static_cast<double>(due.end - due.begin)) * width * (2 * value + 4 * kFloat);
  }
}

ProductKeyTrainingRun time_training(const ProductKeyBench& bench, std::int64_t slots, const Rule& rule,
                                    Runtime& runtime) {
  ProductKeyTrainingRun run{.slots = slots,
                            .tokens = bench.tokens,
                            .kind = rule.kind,
                            .mode = rule.mode,
                            .step = {},
                            .forward = {},
                            .backward = {},
                            .order = {},
                            .update = {},
                            .catch_up = {},
                            .rest = {}};
  Step& step = runtime.step();
  step.begin({});
  TrainedProductKeys layer(bench, slots, runtime);
  const auto optimizer = make_optimizer(options_of(rule), layer.store, step);
  UsedRows used(slots);
  const Device device = runtime.backend().device();
  Tensor x({bench.tokens, bench.width}, DType::f32, device, runtime.memory());
  Tensor dy(x.shape(), DType::f32, device, runtime.memory());
  fill_mixed(dy, 0);
  for (std::int64_t number = 0; number < kProductKeyWarmUpSteps + bench.steps; ++number) {
    fill_mixed(x, static_cast<std::uint32_t>(number + 1));
    KernelTimes times(runtime.backend());
    step.observe(&times);
    double forward = 0, backward = 0, update = 0;
    UsedRows::Counts counts;
    const auto train = [&](Step&) {
      layer.store.zero_gradients(step);
      Tape tape(step);
      MemoryTrace trace;
      Variable y;
      forward = seconds_of([&] { y = layer.memory.forward(tape.leaf(x), {}, &trace); });
      counts = used.count(trace.ids, number);
      trace = {};
      backward = seconds_of([&] { tape.backward(y, dy); });
      y = {};
      update = seconds_of([&] { optimizer->update(step); });
    };
    runtime.in_step(train, {.step = static_cast<std::uint64_t>(number), .piece = 0, .learning_rate = 1e-4f});
    step.observe(nullptr);
    if (number < kProductKeyWarmUpSteps) continue;
    run.touched += counts.touched / static_cast<double>(bench.steps);
    run.behind += counts.behind / static_cast<double>(bench.steps);
    run.step.seconds.push_back(forward + backward + update);
    run.forward.seconds.push_back(forward);
    run.backward.seconds.push_back(backward);
    run.order.seconds.push_back(times.seconds("order_row_uses"));
    run.update.seconds.push_back(times.seconds("adam_rows") + times.seconds("adagrad_rows") +
                                 times.seconds("sum_row_uses"));
    run.catch_up.seconds.push_back(times.seconds("bring_rows_up_to_date"));
    run.rest.seconds.push_back(update - run.update.seconds.back());
  }
  for (PassTimes* times : {&run.step, &run.forward, &run.backward, &run.order, &run.update, &run.catch_up, &run.rest})
    times->sorted();
  set_bytes(run, bench, rule);
  return run;
}

}  // namespace

void bench_product_key_training(const ProductKeyBench& bench, Runtime& runtime, ProductKeyBenchResult& result) {
  for (const std::int64_t slots : bench.slots)
    for (const Rule& rule : kRules) {
      const double numbers = static_cast<double>(slots) * static_cast<double>(bench.width);
      const double bytes =
          numbers * (static_cast<double>(size_of(bench.values)) + (rule.kind == TableKind::adam ? 2 * kFloat : 0));
      const std::string what = text("a training step of ", slots, " slots with ",
                                    rule.kind == TableKind::adam ? "Adam's state" : "a number per row");
      if (const std::string note = too_large(what, bytes); !note.empty()) {
        if (std::ranges::find(result.skipped, note) == result.skipped.end()) result.skipped.push_back(note);
        continue;
      }
      result.trainings.push_back(time_training(bench, slots, rule, runtime));
    }
}

}  // namespace engram
