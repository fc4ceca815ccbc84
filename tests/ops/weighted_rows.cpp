#include "autograd/functions/weighted_rows.hpp"
#include "autograd/functions/check_ids.hpp"

#include "autograd/tape.hpp"
#include "core/arena.hpp"
#include "core/kernels/replace_wrong_ids.hpp"
#include "core/kernels/row_order.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"
#include "tests/ops/sparse_memory.hpp"
#include "tests/reference/basic_ops.hpp"

namespace engram::harness::weighted_rows_test {
namespace {

Array64 by_definition(std::span<const Array64> x) { return reference::weighted_rows(x[0], x[1], x[2]); }
Variable read(std::span<const Variable> x) { return weighted_rows(x[0], x[1].value(), x[2]); }

/// One read, one per result, rows met several times by one result and by several, some never; whole packs and lines and
/// parts of them; a row of more uses than one piece of a sum has.
const std::vector<std::vector<Input>> reads{
    {normal({1, 1}), wide_index({1, 1}, 1), normal({1, 1})},
    {normal({5, 3}), wide_index({4, 7}, 5), normal({4, 7})},
    {normal({40, 4}), wide_index({33, 1}, 40), normal({33, 1})},
    {normal({9, 1}), wide_index({5, 6}, 9), normal({5, 6})},
    {normal({9, 16}), wide_index({3, 5}, 9), normal({3, 5})},
    {normal({4, 520}), wide_integers({2, 3}, {3, 3, 3, 0, 3, 0}), normal({2, 3})},
    {normal({6, 1031}), wide_index({2, 9}, 6), normal({2, 9})},
    {normal({2, 5}), wide_index({3, 200}, 2), normal({3, 200})},
};

const OpCases cases{
    OpCase{
        .name = "weighted_rows",
        .inputs = reads,
        .function = read,
        .reference = by_definition,
        .tolerance = {.bf16 = kMoved},  // nothing is: results, and gradients of a matrix, are f32
        .roles = {Role::matrix, Role::activation, Role::vector},
        .errors = {{.inputs = {normal({5}), wide_index({2, 1}, 5), normal({2, 1})}, .contains = {"[N, width]", "[5]"}},
                   {.inputs = {normal({5, 3}), wide_index({2}, 5), normal({2})}, .contains = {"[R, A]", "[2]"}},
                   {.inputs = {normal({5, 3}), index({2, 1}, 5), normal({2, 1})}, .contains = {"ids", "i64", "i32"}},
                   {.inputs = {normal({5, 3}), wide_index({2, 1}, 5), normal({1, 2})},
                    .contains = {"weights", "[2, 1]", "[1, 2]"}}}},
    OpCase{.name = "weighted_rows, of activations",
           .inputs = reads,
           .function =
               [](std::span<const Variable> x) {
                 Step& step = x[0].tape().step();
                 if (x[0].dtype() == DType::bf16 && step.backend().stores_bf16())
                   step.set_activations(ActivationPrecision::bf16);
                 return read(x);
               },
           .reference = by_definition,
           .tolerance = {.bf16 = kRounding},
           .roles = {Role::activation, Role::activation, Role::vector}},
};

struct ReadFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  Tape tape{step};

  Tensor tensor(Shape shape, const std::vector<double>& numbers, DType dtype) {
    return to_device(backend, memory, Array64{{shape.count()}, numbers}, values(shape, numbers), dtype).view(shape);
  }
  Tensor ids(Shape shape, const std::vector<double>& numbers) {
    return to_device(backend, memory, Array64{{shape.count()}, numbers}, wide_integers(shape, numbers), DType::f32)
        .view(shape);
  }
  std::vector<double> host(const Tensor& x) { return to_host(backend, x).data; }
};

TEST_CASE_METHOD(ReadFixture, "weighted_rows: a table in bf16 gives what its numbers give in f32", "[ops]") {
  for (const std::int64_t width : {1, 31, 64, 520}) {
    const std::vector<Input> inputs{normal({11, width}), wide_index({5, 6}, 11), normal({5, 6}), normal({5, width})};
    const std::vector<Array64> numbers = input_values("bf16 table", inputs, DType::bf16);
    std::vector<std::vector<double>> results;
    for (const DType stored : {DType::bf16, DType::f32}) {
      const Variable table = tape.leaf(tensor({11, width}, numbers[0].data, stored), DType::f32);
      const Variable weights = tape.leaf(tensor({5, 6}, numbers[2].data, DType::f32));
      const Variable y = weighted_rows(table, ids({5, 6}, numbers[1].data), weights);
      results.push_back(host(y.value()));
      tape.backward(y, tensor({5, width}, numbers[3].data, DType::f32));
      results.push_back(host(tape.gradient(table)));
      results.push_back(host(tape.gradient(weights)));
    }
    // A card adds the columns of a row in another order in packs of another width.
    CHECK(results[0] == results[3]);
    CHECK(results[1] == results[4]);
    for (std::size_t i = 0; i < results[2].size(); ++i)
      CHECK(results[2][i] == Approx(results[5][i]).epsilon(1e-5).margin(1e-5));
  }
}

TEST_CASE_METHOD(ReadFixture, "weighted_rows: weights must have the dtype that the values are computed in", "[ops]") {
  const Variable table = tape.constant(tensor({2, 1}, {1, 2}, DType::f64));
  CHECK_THROWS_WITH(weighted_rows(table, ids({1, 1}, {0}), tape.constant(tensor({1, 1}, {1}, DType::f32))),
                    ContainsSubstring("weights must be f64, got f32"));
}

// [product-key 10], test 20: 46341^2 slots are the first square whose ids do not fit into 32 bits.
TEST_CASE_METHOD(ReadFixture, "weighted_rows: row 2147488280 of a table", "[ops]") {
  if (backend.device().kind == DeviceKind::cuda) return;  // its memory is not sparse
  constexpr std::int64_t kSubkeys = 46341, kRows = kSubkeys * kSubkeys, kLast = 2147488280;
  static_assert(kLast == kRows - 1);
  SparseMemory sparse;
  const Tensor values(Shape{kRows, 1}, DType::bf16, backend.device(), sparse);
  values.data<bf16>()[kLast] = bf16(3.0f);
  values.data<bf16>()[kLast - (std::int64_t{1} << 31)] = bf16(100.0f);
  values.data<bf16>()[1] = bf16(5.0f);
  const Tensor read_ids = ids({2, 2}, {1, kLast, kLast, kLast});
  const Variable weights = tape.leaf(tensor({2, 2}, {1, 2, 10, 20}, DType::f32));
  const Variable y = weighted_rows(tape.constant(values), read_ids, weights);
  CHECK(host(y.value()) == std::vector<double>{11, 90});
  const Tensor dy = tensor({2, 1}, {1, -1}, DType::f32);
  tape.backward(y, dy);
  CHECK(host(tape.gradient(weights)) == std::vector<double>{5, 3, -3, -3});
  const RowOrder order = ordered(step, read_ids, kRows);
  CHECK(host(order.rows) == std::vector<double>{1, kLast, -1, -1});
  CHECK(host(order.uses) == std::vector<double>{0, 1, 2, 3});
  Tensor sums = step.empty({4, 1}, DType::f32);
  kernels::sum_row_uses(step, {read_ids, weights.value(), dy}, order, sums);
  CHECK(host(sums) == std::vector<double>{1, 2 - 10 - 20, 0, 0});
}

TEST_CASE_METHOD(ReadFixture, "weighted_rows: an id outside the table is an error, and nothing outside is used",
                 "[ops]") {
  const std::vector<double> rows{1, 2, 3, 4, 5};
  for (const double bad : {5.0, -1.0, 4294967296.0, -9e18}) {
    const Variable table = tape.leaf(tensor({5, 1}, rows, DType::f32));
    const Variable weights = tape.leaf(tensor({2, 2}, {1, 10, 100, 1000}, DType::f32));
    const Tensor read_ids = ids({2, 2}, {4, bad, 2, bad});
    if (ids_are_checked() || backend.device().kind == DeviceKind::cpu) {
      CHECK_THROWS_WITH(
          weighted_rows(table, read_ids, weights),
          ContainsSubstring(text("the ids must be in [0, 5), got ", static_cast<std::int64_t>(bad), " at place 1")));
      continue;
    }
    // Row 0 is taken in its place, until the host waits for the device and learns of it.
    const Variable y = weighted_rows(table, read_ids, weights);
    CHECK(host(y.value()) == std::vector<double>{5 + 10, 300 + 1000});
    tape.backward(y, tensor({2, 1}, {1, 1}, DType::f32));
    CHECK(host(tape.gradient(table)) == std::vector<double>{1010, 0, 100, 0, 1});
    CHECK(host(tape.gradient(weights)) == std::vector<double>{5, 1, 3, 1});
    CHECK_THROWS_WITH(step.wrong_ids().check(),
                      ContainsSubstring("weighted_rows: the ids must be in [0, 5), got another at place 1"));
    CHECK_NOTHROW(step.wrong_ids().check());
  }
}

TEST_CASE_METHOD(ReadFixture, "weighted_rows: a captured step finds wrong ids too, and names the lookup", "[ops]") {
  if (ids_are_checked() || !backend.works_behind()) return;
  HeapAllocator heap(backend);  // a captured step must find its memory as it was
  Arena arena(heap);
  Step captured(backend, arena);
  const Tensor first = tensor({5, 1}, {1, 2, 3, 4, 5}, DType::f32), second = tensor({3, 1}, {1, 2, 3}, DType::f32);
  const Tensor weights = tensor({1, 2}, {1, 1}, DType::f32);
  const Tensor of_first = ids({1, 2}, {4, 3}), of_second = ids({1, 2}, {0, 2});
  const auto work = [&] {
    Tape looking(captured, Tape::Mode::inference);
    weighted_rows(looking.constant(first), of_first, looking.constant(weights));
    weighted_rows(looking.constant(second), of_second, looking.constant(weights));
  };
  work();
  const std::unique_ptr<Replay> replay = backend.capture(work);
  CHECK_NOTHROW(captured.wrong_ids().check());
  const auto write = [&](const Tensor& to, std::vector<std::int64_t> numbers) {
    backend.copy(to.raw(), numbers.data(), to.bytes(), CopyKind::host_to_device);
    replay->run();
  };
  write(of_second, {2, 3});
  CHECK_THROWS_WITH(captured.wrong_ids().check(), ContainsSubstring("[0, 3), got another at place 1"));
  write(of_first, {-1, 0});
  CHECK_THROWS_WITH(captured.wrong_ids().check(), ContainsSubstring("[0, 5), got another at place 0"));
  CHECK(host(of_first) == std::vector<double>{0, 0});
  replay->run();
  CHECK_NOTHROW(captured.wrong_ids().check());
}

TEST_CASE_METHOD(ReadFixture, "replace_wrong_ids: the first place of the first lookup is reported", "[ops]") {
  WrongIds& wrong = step.wrong_ids();
  CHECK_NOTHROW(wrong.check());
  CHECK(wrong.lookup("a", "ids", 10) == 0);
  CHECK(wrong.lookup("b", "ids", 700) == 1);
  CHECK(wrong.lookup("a", "ids", 10) == 0);
  std::vector<double> many(1500);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<double>(i % 701);
  Tensor found = ids({3, 500}, many);
  kernels::replace_wrong_ids(step, 700, 1, found, wrong.report());
  for (double& id : many) id = id == 700 ? 0 : id;
  CHECK(host(found) == many);
  Tensor small = ids({2, 2}, {9, 3, 10, -4});
  kernels::replace_wrong_ids(step, 10, 0, small, wrong.report());
  CHECK(host(small) == std::vector<double>{9, 3, 0, 0});
  kernels::replace_wrong_ids(step, 700, 1, small, wrong.report());
  CHECK_THROWS_WITH(wrong.check(), ContainsSubstring("a: ids must be in [0, 10), got another at place 2"));
  Tensor again = ids({1, 2}, {0, 700});
  kernels::replace_wrong_ids(step, 700, 1, again, wrong.report());
  CHECK_THROWS_WITH(wrong.check(), ContainsSubstring("b: ids must be in [0, 700), got another at place 1"));
  CHECK_NOTHROW(wrong.check());
}

}  // namespace
}  // namespace engram::harness::weighted_rows_test
