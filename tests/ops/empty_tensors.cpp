/// Tensors without elements pass through every function, forwards and backwards: a batch may be empty, a part of a
/// concatenation too. The op table cannot hold them, since a gradient without elements checks nothing.

#include "autograd/functions.hpp"
#include "autograd/tape.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/each_device.hpp"

namespace engram::harness::empty_tensors_test {
namespace {

struct EmptyFixture {
  Backend& backend = each_device();
  GuardedAllocator memory{backend};
  Step step{backend, memory};
  Tape tape{step};

  Variable leaf(Shape shape) { return tape.leaf(filled(shape, DType::f32)); }
  Tensor filled(Shape shape, DType dtype) {
    const std::vector<double> numbers(static_cast<std::size_t>(shape.count()), 1);
    return to_device(backend, memory, Array64{{shape.count()}, numbers}, values(shape, numbers), dtype).view(shape);
  }
  Tensor counts(Shape shape) { return filled(shape, DType::i32); }
  Tensor no_ids() { return step.empty({0}, DType::i32); }
  std::vector<double> gradient(const Variable& x) { return to_host(backend, tape.gradient(x)).data; }
};

TEST_CASE_METHOD(EmptyFixture, "a chain of functions over no rows", "[ops]") {
  const Variable x = leaf({0, 3}), gain = leaf({3}), bias = leaf({3}), weight = leaf({2, 3});
  Variable y = add(x, scale(x, 2));
  y = add_bias(multiply(y, x), bias);
  y = gelu(relu(tanh(sigmoid(y))));
  y = relu_dropout(dropout(softmax(y), 0.5), bias, 0.5);
  y = layer_norm(layer_norm_residual(y, x, gain, bias).normalised, gain, bias);
  y = batch_norm(l2_norm(rms_norm(y, gain)), gain, bias, {filled({3}, DType::f32), filled({3}, DType::f32)});
  y = reshape(linear(y, weight), {2, 0});
  const Variable loss = sum(y);
  CHECK(to_host(backend, loss.value()).data == std::vector<double>{0});
  tape.backward({loss});
  CHECK(gradient(x).empty());
  CHECK(gradient(gain) == std::vector<double>{0, 0, 0});
  CHECK(gradient(bias) == std::vector<double>{0, 0, 0});
  CHECK(gradient(weight) == std::vector<double>{0, 0, 0, 0, 0, 0});
}

TEST_CASE_METHOD(EmptyFixture, "dropout over no streams, no times, no features and no words", "[ops]") {
  for (const Shape& shape : {Shape{0, 2, 3}, Shape{2, 0, 3}, Shape{2, 3, 0}}) {
    const Variable x = leaf(shape);
    const Variable y = word_dropout(reshape(variational_dropout(x, 0.5), {0, 4}), no_ids(), 0.5);
    tape.backward({sum(y)});
    CHECK(gradient(x).empty());
  }
}

TEST_CASE_METHOD(EmptyFixture, "empty parts and slices", "[ops]") {
  const Variable x = leaf({2, 3}), none = leaf({2, 0});
  const Variable parts[] = {slice(x, 1, 1, 1), none, x, slice(x, 1, 3, 3)};
  const Variable whole = concat(parts, 1);
  CHECK(whole.shape() == Shape{2, 3});
  tape.backward({sum(whole)});
  CHECK(gradient(x) == std::vector<double>(6, 1));
  CHECK(gradient(none).empty());
}

TEST_CASE_METHOD(EmptyFixture, "a slice of nothing has a zero gradient", "[ops]") {
  const Variable x = leaf({2, 3});
  tape.backward({sum(slice(x, 0, 1, 1))});
  CHECK(gradient(x) == std::vector<double>(6, 0));
}

TEST_CASE_METHOD(EmptyFixture, "no ids, no rows of logits", "[ops]") {
  const Variable table = leaf({4, 3});
  const CrossEntropy result = cross_entropy(embedding(table, no_ids()), no_ids(), filled({0}, DType::f32));
  CHECK(to_host(backend, result.loss.value()).data == std::vector<double>{0});
  tape.backward({result.loss});
  CHECK(gradient(table) == std::vector<double>(12, 0));
}

TEST_CASE_METHOD(EmptyFixture, "no results of rows, and results of no rows", "[ops]") {
  for (const Shape& shape : {Shape{0, 5}, Shape{2, 0}}) {
    const Variable table = leaf({4, 3}), weights = leaf(shape);
    const Variable y = weighted_rows(table, step.empty(shape, DType::i64), weights);
    CHECK(to_host(backend, y.value()).data == std::vector<double>(static_cast<std::size_t>(3 * shape[0]), 0));
    tape.backward({sum(y)});
    CHECK(gradient(table) == std::vector<double>(12, 0));
    CHECK(gradient(weights).empty());
  }
}

TEST_CASE_METHOD(EmptyFixture, "a loss of no rows from a vocabulary", "[ops]") {
  for (const std::int64_t rows : {1, 100}) {
    const Variable x = leaf({0, 3}), weight = leaf({4, 3}), bias = leaf({4});
    const LinearCrossEntropy result = linear_cross_entropy(x, weight, bias, no_ids(), filled({0}, DType::f32), rows);
    CHECK(to_host(backend, result.loss.value()).data == std::vector<double>{0});
    CHECK(result.row_loss.shape() == Shape{0});
    tape.backward({result.loss});
    CHECK(gradient(x).empty());
    CHECK(gradient(weight) == std::vector<double>(12, 0));
    CHECK(gradient(bias) == std::vector<double>(4, 0));
  }
}

TEST_CASE_METHOD(EmptyFixture, "products of no rows, over nothing and of no batches", "[ops]") {
  const std::pair<Shape, Shape> shapes[] = {{{0, 3}, {3, 2}}, {{2, 0}, {0, 3}}, {{0, 2, 3}, {0, 3, 2}}};
  for (const auto& [left, right] : shapes) {
    const Variable a = leaf(left), b = leaf(right);
    const Variable y = sum(matmul(a, b));
    CHECK(to_host(backend, y.value()).data == std::vector<double>{0});
    tape.backward({y});
    CHECK(gradient(a).empty());
    CHECK(gradient(b) == std::vector<double>(static_cast<std::size_t>(right.count()), 0));
  }
}

TEST_CASE_METHOD(EmptyFixture, "attention of no streams over a past of none", "[ops]") {
  AttentionOptions options;
  options.heads = 1;
  options.max_distance = 2;
  options.windows = HeadWindows({2});
  const Variable x = leaf({0, 3, 4}), weight = leaf({4, 5}), other = leaf({4, 5});
  const PastProjections past = project_past(filled({0, 2, 5}, DType::f32), weight, other, options.windows);
  CHECK(past.keys.shape() == Shape{0, 4});
  const AttentionResult result = attention(
      {{.content_query = x, .past_keys = past.keys, .past_values = past.values, .keys = x, .values = x}}, options);
  CHECK(result.out.shape() == Shape{0, 3, 4});
  tape.backward({sum(result.out)});
  CHECK(gradient(x).empty());
  CHECK(gradient(weight) == std::vector<double>(20, 0));
  CHECK(gradient(other) == std::vector<double>(20, 0));
}

TEST_CASE_METHOD(EmptyFixture, "joined products of no rows", "[ops]") {
  const Variable x = leaf({0, 3}), weights[] = {leaf({2, 3}), leaf({1, 3})}, biases[] = {leaf({2}), leaf({1})};
  const Variable y = joined_linear(x, weights, biases);
  CHECK(y.shape() == Shape{0, 3});
  tape.backward({sum(y)});
  CHECK(gradient(weights[0]) == std::vector<double>(6, 0));
  CHECK(gradient(biases[1]) == std::vector<double>{0});
}

TEST_CASE_METHOD(EmptyFixture, "slots of no queries", "[ops]") {
  const Variable query = leaf({0, 8}), keys = leaf({2, 2, 3, 2});
  const ProductKeySelection best = product_key_top_k(query, keys, 4);
  CHECK(best.scores.shape() == Shape{0, 2, 4});
  CHECK(best.ids.shape() == Shape{0, 2, 4});
  tape.backward({sum(best.scores)});
  CHECK(gradient(query).empty());
  CHECK(gradient(keys) == std::vector<double>(24, 0));
}

TEST_CASE_METHOD(EmptyFixture, "a recurrence of no streams", "[ops]") {
  const Variable inputs = leaf({0, 3, 8}), weight = leaf({8, 2});
  const Recurrence result = recurrence(inputs, weight, {}, counts({0, 3}), {.cell = RecurrentCell::lstm});
  CHECK(result.outputs.shape() == Shape{0, 3, 2});
  CHECK(result.cells.shape() == Shape{0, 3, 2});
  tape.backward({sum(result.outputs)});
  CHECK(gradient(inputs).empty());
  CHECK(gradient(weight) == std::vector<double>(16, 0));
}

TEST_CASE_METHOD(EmptyFixture, "a quasi-recurrence of no streams", "[ops]") {
  const Variable inputs = leaf({0, 3, 6});
  const Recurrence result = quasi_recurrence(inputs, {}, counts({0, 3}));
  CHECK(result.outputs.shape() == Shape{0, 3, 2});
  CHECK(result.cells.shape() == Shape{0, 3, 2});
  tape.backward({sum(result.outputs)});
  CHECK(gradient(inputs).empty());
}

TEST_CASE_METHOD(EmptyFixture, "windows of no streams and no times", "[ops]") {
  // The second: no times after one carried row.
  const std::pair<Shape, Shape> shapes[] = {{{0, 3}, {0, 3}}, {{2, 0}, {2, 1}}};
  for (const auto& [block, extended] : shapes) {
    const Variable rows = leaf({extended[0], extended[1], 4}), queries = leaf({block[0], block[1], 4});
    const Variable score = leaf({4}), of_keys = leaf({2, 4});
    const Variable sums[] = {
        sum(window_attention_additive(rows, queries, score, rows, counts(block), {.window = 2}).context),
        sum(window_attention_dot(rows, queries, rows, of_keys, {}, counts(block), 2).context),
        sum(delayed_slices(rows, counts(block), 2))};
    for (const Variable& y : sums) CHECK(to_host(backend, y.value()).data == std::vector<double>{0});
    tape.backward({sums[0], sums[1], sums[2]});
    CHECK(gradient(rows) == std::vector<double>(static_cast<std::size_t>(rows.shape().count()), 0));
    CHECK(gradient(queries).empty());
    CHECK(gradient(score) == std::vector<double>(4, 0));
    CHECK(gradient(of_keys) == std::vector<double>(8, 0));
  }
}

}  // namespace
}  // namespace engram::harness::empty_tensors_test
