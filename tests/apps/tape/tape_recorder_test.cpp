#include "apps/tape/tape_recorder.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "apps/tape/tape_differences.hpp"
#include "autograd/parameter_store.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/scope.hpp"
#include "tests/apps/tape/small_step.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::tape_recorder_test {
namespace {

using Numbers = std::vector<double>;
constexpr std::int64_t kAll = 100;

const RecordedValue& named(const TapeRecording& recording, const std::string& name) {
  for (const RecordedValue& value : recording.values)
    if (value.name == name) return value;
  throw Error("no value " + name);
}
/// "add leaf 0": shares of an operation's backward pass.
std::vector<std::string> shares_of(const TapeRecording& recording, std::size_t op) {
  std::vector<std::string> words;
  for (const RecordedShare& share : recording.ops[op].backward.shares)
    words.push_back(text(name_of(share.how), " ", recording.values[static_cast<std::size_t>(share.value)].name));
  return words;
}

TEST_CASE("tape recorder: operations, values, gradients as they arrive, and bytes", "[tape]") {
  const TapeRecording recording = record_tape(small_step(tour_loss), kAll);
  std::vector<std::string> names;
  for (const RecordedOp& op : recording.ops) names.push_back(op.name);
  CHECK(names == std::vector<std::string>{"matmul", "add", "tanh", "sum"});
  CHECK(named(recording, "leaf 0").numbers == Numbers{0.5, -1.0, 0.25, 0.75});
  CHECK(named(recording, "t0").numbers == Numbers{-2.0, -1.5, -0.375, 1.75});
  CHECK(named(recording, "t1").numbers == Numbers{-1.5, -2.5, -0.125, 2.5});
  const double loss = std::tanh(-1.5) + std::tanh(-2.5) + std::tanh(-0.125) + std::tanh(2.5);
  CHECK(recording.loss == Approx(loss));
  CHECK(recording.losses == std::vector{5});

  CHECK(shares_of(recording, 3) == std::vector<std::string>{"set t2"});
  CHECK(shares_of(recording, 1) == std::vector<std::string>{"set t0", "passed leaf 0"});
  CHECK(shares_of(recording, 0) == std::vector<std::string>{"add leaf 0", "set leaf 1"});
  const RecordedShare& added = recording.ops[0].backward.shares[0];
  CHECK(added.before == recording.ops[1].backward.shares[1].after);
  CHECK(added.after == named(recording, "leaf 0").gradient);
  // As the tour prints them.
  CHECK(added.after[0] == Approx(-0.3348).margin(5e-5));
  CHECK(named(recording, "leaf 1").gradient[2] == Approx(0.5577).margin(5e-5));
  CHECK(named(recording, "t3").gradient == Numbers{1});

  // matmul keeps both leaves, tanh its output; each has 32 bytes.
  const auto kept = [&](std::size_t op) { return recording.ops[op].kept_bytes; };
  CHECK(std::vector{kept(0), kept(1), kept(2), kept(3)} == std::vector<std::size_t>{64, 0, 32, 0});
  CHECK(recording.ops[2].kept[0].value == recording.ops[2].outputs[0]);
  CHECK(recording.turn.kept == 96);
  CHECK(recording.turn.gradients == 8);
  CHECK(recording.ops[1].forward.memory.kept == 64);
  CHECK(recording.ops[2].backward.memory.kept == 64);
  CHECK(recording.ops[2].backward.memory.gradients == 32);
  CHECK(recording.ops[1].backward.memory.gradients == 64);
  CHECK(recording.ops[0].backward.memory.kept == 0);
  CHECK(recording.ops[0].backward.memory.gradients == 64);  // of the leaves, which stay
  CHECK(recording.peak_bytes() == 128);
  CHECK(recording.ops[0].forward.kernels == std::vector<std::string>{"matmul"});
  CHECK(recording.ops[0].backward.kernels == std::vector<std::string>{"matmul", "matmul"});
  CHECK(recording.ops[0].forward.memory.used >= 3 * 256);
  CHECK_THAT(recording.table, ContainsSubstring("4 operations keep 96 B"));
}

TEST_CASE("tape recorder: numbers of tensors that are too large are left out", "[tape]") {
  const TapeRecording recording = record_tape(small_step(tour_loss), 3);
  CHECK(named(recording, "leaf 0").numbers.empty());
  CHECK(recording.ops[0].backward.shares[0].after.empty());
  CHECK(named(recording, "t3").numbers.size() == 1);
  CHECK(recording.peak_bytes() == 128);
}

TEST_CASE("tape recorder: parameters, scopes, constants, views and consumed logits", "[tape]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  Parameter weight({3, 2}, {Initializer::Kind::uniform, 0.5});
  ParameterStore store;
  store.add("layer.weight", weight);
  store.place(*backend, DType::f64, 3);
  const TapeStep step = small_step([&](Tape& tape) {
    store.zero_gradients(tape.step());
    Variable logits;
    {
      const Scope scope("layer");
      const Variable x = tape.constant(small_tensor(tape.step(), {1, 2, 2}, {1, -2, 0.5, 3}));
      logits = linear(reshape(linear(x, slice(tape.parameter(weight), 0, 0, 2)), {2, 2}), tape.parameter(weight));
    }
    Tensor targets = tape.step().empty({2}, DType::i32);
    targets.data<std::int32_t>()[0] = 2;
    targets.data<std::int32_t>()[1] = 0;
    return cross_entropy(std::move(logits), targets, small_tensor(tape.step(), {2}, {0.5, 0.5})).loss;
  });
  TapeRecording recording = record_tape(step, kAll);
  CHECK(recording.ops[1].scope == "layer");
  CHECK(recording.ops.back().scope.empty());
  CHECK(named(recording, "constant 0").numbers == Numbers{1, -2, 0.5, 3});
  CHECK_FALSE(named(recording, "constant 0").wants_gradient);
  CHECK(named(recording, "t0").shares);
  CHECK(named(recording, "t2").shares);
  CHECK_FALSE(named(recording, "t3").shares);
  // cross_entropy wrote its gradient over the logits: they were read before.
  CHECK(named(recording, "t3").numbers != named(recording, "t3").gradient);
  CHECK(shares_of(recording, 4) == std::vector<std::string>{"passed t3"});

  add_differences(recording, step);
  CHECK(named(recording, "t2").numeric.empty());
  CHECK(named(recording, "layer.weight").numeric.size() == 6);
  CHECK(recording.checked == 6 + 4 + 6 + 1);
  CHECK(recording.worst < 1e-8);
  CHECK(recording.unchecked == 0);
  DifferenceOptions few;
  few.most = 7;
  TapeRecording again = record_tape(step, kAll);
  add_differences(again, step, few);
  CHECK(again.checked == 7);
  CHECK(again.agreed == 7);
  CHECK(again.unchecked == 10);
  CHECK(again.loss == recording.loss);  // what was moved was put back
}

TEST_CASE("tape recorder: a wrong gradient is found beside its difference", "[tape]") {
  struct Half final : Node {
    std::string_view name() const override { return "half"; }
    void backward(Step& step, Backward& pass) override {
      if (const Target dx = pass.input_grad(0)) kernels::accumulate(step, pass.output_grad(), 0.5, dx);
    }
  };
  const TapeStep step = small_step([](Tape& tape) {
    const Variable x = tape.leaf(small_tensor(tape.step(), {2}, {1, 2}));
    Tensor y = tape.step().empty({2}, DType::f64);
    tape.step().backend().copy(y.raw(), x.value().raw(), y.bytes(), CopyKind::device_to_device);
    return sum(tape.record(Half(), {x}, std::move(y)));
  });
  TapeRecording recording = record_tape(step, kAll);
  add_differences(recording, step);
  CHECK(named(recording, "leaf 0").numeric[0] == Approx(1));
  CHECK(recording.worst == Approx(0.5));
  // Two numbers of the leaf are wrong; two of what `half` made and the loss are right.
  CHECK(recording.checked == 5);
  CHECK(recording.agreed == 3);
  CHECK(recording.values[static_cast<std::size_t>(recording.worst_value)].name == "leaf 0");
}

TEST_CASE("tape recorder: a step without a loss, and one that changes", "[tape]") {
  CHECK_THAT(message_of<Error>([] { record_tape([](TapeObserver&) {}, kAll); }),
             ContainsSubstring("runs backwards from a loss, found none"));
  int times = 0;
  const TapeStep changing = small_step([&times](Tape& tape) {
    const Variable x = tape.leaf(small_tensor(tape.step(), {1}, {1}));
    return times++ == 0 ? sum(tanh(x)) : sum(tanh(tanh(x)));
  });
  TapeRecording recording = record_tape(changing, kAll);
  CHECK_THAT(message_of<Error>([&] { add_differences(recording, changing); }),
             ContainsSubstring("must do the same whenever it runs"));
}

}  // namespace
}  // namespace engram::harness::tape_recorder_test
