/// A softmax over a vocabulary whose logits are more than TokenIoOptions::logits_bytes is computed in blocks of rows:
/// losses and gradients are those of all logits at once, also where some targets do not count.

#include <cmath>
#include <tuple>

#include "tests/harness/catch.hpp"
#include "tests/nn/token_variants.hpp"

namespace engram::harness::token_blocks_test {
namespace {

using reference::Array64;

const std::vector<std::int32_t> kInputs{16, 0, 4, 5, 12, 10, 11, 3, 13, 9, 1, 16, 2, 7},
    kTargets{5, 16, 1, 10, 13, 4, 0, 11, 8, 9, 2, 5, 5, 6};
constexpr std::int64_t kStreams = 2, kRows = 14, kWords = 17;

struct Found {
  std::vector<double> rows;
  double loss = 0;
  Array64 hidden;
  Values parameters;
  std::string operation;  ///< the last that was recorded
};

Found found_with(TokenBench& bench, bool some_do_not_count) {
  bench.set(random_values(bench.store, 11));
  bench.store.zero_gradients(bench.step);
  TokenBatch block = bench.batch(kInputs, kTargets, kStreams);
  if (some_do_not_count) {
    Array64 counts = reference::constant(1, {kRows});
    counts.at(0) = counts.at(6) = counts.at(13) = 0;
    block.scored = bench.tensor(counts);
  }
  Tape tape(bench.step);
  const Array64 states = reference::RandomArrays(4).array({kStreams, kRows / kStreams, bench.options.width});
  const Variable hidden = tape.leaf(bench.tensor(states));
  const Variable embedded = bench.tokens().embed(tape, block);
  CHECK(embedded.shape()[2] == (bench.options.own_input_width ? bench.options.embedding_width : bench.options.width));
  auto parts = bench.tokens().losses(hidden, block, 0.125);
  REQUIRE(parts.size() == 1);
  Found found{.rows = bench.row_losses(parts, kRows),
              .loss = to_host(bench.backend, parts[0].loss.value()).data[0],
              .hidden = {},
              .parameters = {},
              .operation = std::string(tape.entry(tape.size() - 1).node->name())};
  const std::vector<Variable> roots{parts[0].loss};
  parts.clear();
  tape.backward(roots);
  found.hidden = to_host(bench.backend, tape.gradient(hidden));
  for (const auto& [name, parameter] : bench.store.parameters())
    found.parameters[name] = to_host(bench.backend, parameter->gradient());
  return found;
}

TEST_CASE("a whole vocabulary's losses in blocks of rows are those of all logits at once", "[tokens]") {
  const TokenIoOptions kinds[] = {
      {.vocabulary = kWords, .width = 8},
      {.vocabulary = kWords, .width = 8, .embedding_width = 5, .own_input_width = true},
      {.vocabulary = kWords, .width = 8, .tie_plain = true},
      {.vocabulary = kWords, .width = 8, .embedding_width = 5, .tie_plain = true},
  };
  for (const auto& backend : available_backends())
    for (const TokenIoOptions& options : kinds)
      for (const bool some_do_not_count : {false, true}) {
        CAPTURE(name_of(backend->device().kind), options.embedding_width, options.tie_plain, some_do_not_count);
        TokenBench whole(options, *backend);
        const Found expected = found_with(whole, some_do_not_count);
        CHECK(expected.operation == "cross_entropy");
        // Three rows at a time, one at a time, and less than one: it is one then.
        for (const std::int64_t rows : {3, 1, 0}) {
          CAPTURE(rows);
          TokenIoOptions few = options;
          few.logits_bytes = std::max<std::int64_t>(1, rows * kWords * 8);
          TokenBench blocks(few, *backend);
          const Found got = found_with(blocks, some_do_not_count);
          CHECK(got.operation == "linear_cross_entropy");
          CHECK(got.loss == Approx(expected.loss).epsilon(1e-14));
          for (std::size_t i = 0; i < kRows; ++i) CHECK(got.rows[i] == Approx(expected.rows[i]).epsilon(1e-13));
          CHECK(reference::norm(expected.hidden) > 1e-3);
          CHECK(reference::distance_between(got.hidden, expected.hidden) < 1e-13 * reference::norm(expected.hidden));
          for (const auto& [name, gradient] : expected.parameters) {
            CAPTURE(name);
            CHECK(reference::distance_between(got.parameters.at(name), gradient) <= 1e-13 * reference::norm(gradient));
          }
          if (some_do_not_count)
            for (std::int64_t i = 0; i < options.width; ++i) CHECK(got.hidden.at(0, 0, i) == 0);
        }
      }
}

TEST_CASE("a vocabulary in clusters weighs targets that do not count with nothing", "[tokens]") {
  for (const auto& backend : available_backends())
    for (const std::int64_t divisor : {1, 2}) {
      TokenBench bench({.vocabulary = kWords, .width = 8, .cutoffs = {5, 11}, .divisor = divisor}, *backend);
      reference::Array64 counts = reference::constant(1, {kRows});
      for (const std::size_t row : {1, 4, 6}) counts.data[row] = 0;
      const auto run = [&](const Tensor& scored) {
        bench.step.begin({});
        bench.store.zero_gradients(bench.step);
        TokenBatch block = bench.batch(kInputs, kTargets, kStreams, backend->works_behind());
        block.scored = scored;
        Tape tape(bench.step);
        reference::Array64 states = reference::zeros({kStreams, kRows / kStreams, 8});
        for (std::size_t i = 0; i < states.data.size(); ++i) states.data[i] = std::sin(static_cast<double>(i));
        const Variable hidden = tape.leaf(bench.tensor(states));
        std::vector<Variable> roots;
        std::vector<double> rows(kRows);
        double loss = 0;
        for (const LossPart& part : bench.tokens().losses(hidden, block, 0.5)) {
          const std::vector<double> found = to_host(*backend, part.row_loss).data;
          for (std::size_t i = 0; i < (part.rows ? part.rows->size() : rows.size()); ++i)
            rows[part.rows ? static_cast<std::size_t>((*part.rows)[i]) : i] += found[i];
          loss += to_host(*backend, part.loss.value()).data[0];
          roots.push_back(part.loss);
        }
        tape.backward(roots);
        return std::tuple(rows, loss, to_host(*backend, tape.gradient(hidden)));
      };
      const auto [all_rows, all_loss, all_gradient] = run({});
      const auto [rows, loss, gradient] = run(bench.tensor(counts));
      double wanted = 0;
      for (std::size_t row = 0; row < kRows; ++row) {
        CHECK(rows[row] == all_rows[row]);
        wanted += 0.5 * counts.data[row] * rows[row];
        for (std::size_t i = 0; i < 8; ++i) {
          const double own = gradient.data[row * 8 + i];
          CHECK(own == Approx(counts.data[row] * all_gradient.data[row * 8 + i]).epsilon(1e-12));
          if (counts.data[row] == 0) CHECK(own == 0);
        }
      }
      CHECK(loss == Approx(wanted).epsilon(1e-13));
      CHECK(loss < all_loss);
    }
}

}  // namespace
}  // namespace engram::harness::token_blocks_test
