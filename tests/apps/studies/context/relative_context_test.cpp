/// Relative effective context length from losses alone: the toy numbers of T14 of [transformer-xl 12].

#include "apps/studies/context/relative_context.hpp"

#include <cmath>

#include "core/error.hpp"
#include "tests/harness/catch.hpp"

namespace engram::relative_context_test {
namespace {

ContextLosses toy() {
  return {.lengths = {1, 2, 3, 4},
          .losses = {{{4, 3, 2.5, 1}, {3, 2.9, 2.5, 1}, {2.5, 2.9, 2.4, 1}, {2.5, 2.9, 2.4, 1}},
                     {{5, 2, 2.6, 2}, {4.9, 2, 2, 2}, {4.9, 2, 1.99, 2}, {4.9, 2, 1.99, 2}}}};
}

constexpr double kThreshold = 0.01;

}  // namespace

TEST_CASE("relative context: the toy group has the lengths and gains of the worked tables") {
  const std::vector<RelativeContext> hard = relative_contexts(toy(), 0.5, kThreshold);
  REQUIRE(hard.size() == 2);
  CHECK(hard[0].length == 3);
  CHECK(hard[1].length == 2);
  REQUIRE(hard[0].gains.size() == 3);
  CHECK(hard[0].gains[0] == Approx(0.393469).margin(1e-6));
  CHECK(hard[0].gains[1] == Approx(0.221199).margin(1e-6));
  CHECK(hard[0].gains[2] == 0);
  CHECK(hard[1].gains[0] == Approx(0.221199).margin(1e-6));
  CHECK(hard[1].gains[1] == 0);

  const std::vector<RelativeContext> all = relative_contexts(toy(), 1, kThreshold);
  CHECK(all[0].length == 3);
  CHECK(all[1].length == 2);
  CHECK(all[0].gains[0] == Approx(0.221199).margin(1e-6));
  CHECK(all[0].gains[1] == Approx(0.117503).margin(1e-6));
  CHECK(all[0].gains[2] == 0);
  CHECK(all[1].gains[0] == Approx(0.117503).margin(1e-6));
  CHECK(all[1].gains[1] == Approx(0.002497).margin(1e-6));
  for (const auto& contexts : {hard, all})
    for (const RelativeContext& context : contexts) CHECK(context.is_reached);
}

TEST_CASE("relative context: all models of a group begin from the same loss, and no gain is negative") {
  for (const double share : {0.25, 0.5, 0.75, 1.0}) {
    for (std::size_t length = 0; length < 4; ++length)
      CHECK(relative_loss(toy(), 0, length, length, share) == relative_loss(toy(), 1, length, length, share));
    for (const RelativeContext& context : relative_contexts(toy(), share, kThreshold))
      for (const double gain : context.gains) {
        CHECK(gain >= 0);
        CHECK(gain < 1);
        CHECK_FALSE(std::signbit(gain));
      }
  }
}

TEST_CASE("relative context: hard positions are the ceil(r n) largest, the earlier of equal ones") {
  ContextLosses table = toy();
  // b(1, t) = 4, 2, 2.5, 1.
  CHECK(hard_positions(table, 0, 0.5) == std::vector<std::size_t>{0, 2});
  CHECK(hard_positions(table, 0, 0.51) == std::vector<std::size_t>{0, 1, 2});
  CHECK(hard_positions(table, 0, 0.01) == std::vector<std::size_t>{0});
  CHECK(hard_positions(table, 0, 1).size() == 4);
  for (auto& model : table.losses)
    for (auto& losses : model) losses = {1, 3, 3, 3};
  CHECK(hard_positions(table, 1, 0.5) == std::vector<std::size_t>{1, 2});
  // 0.1 * 30 is a little more than 3 in floating point.
  for (auto& model : table.losses)
    for (auto& losses : model) losses.assign(30, 1);
  CHECK(hard_positions(table, 0, 0.1).size() == 3);
}

TEST_CASE("relative context: a model that still gains at the last length has at least that") {
  ContextLosses table = toy();
  table.lengths.resize(2);
  for (auto& model : table.losses) model.resize(2);
  const std::vector<RelativeContext> contexts = relative_contexts(table, 0.5, kThreshold);
  for (const RelativeContext& context : contexts) {
    CHECK(context.length == 2);
    CHECK_FALSE(context.is_reached);
  }
  CHECK(relative_contexts(table, 0.5, 0.3)[1].length == 1);
  CHECK(relative_contexts(table, 0.5, 0.3)[1].is_reached);
}

TEST_CASE("relative context: a group changes what its members gain") {
  ContextLosses alone = toy();
  alone.losses.pop_back();
  // Without the other model nobody was better at position 1 before.
  CHECK(relative_contexts(alone, 1, kThreshold)[0].gains[0] > relative_contexts(toy(), 1, kThreshold)[0].gains[0]);
}

TEST_CASE("relative context: tables that do not fit are errors") {
  const auto refused = [](auto change) {
    ContextLosses table = toy();
    change(table);
    CHECK_THROWS_AS(relative_contexts(table, 0.5, kThreshold), Error);
  };
  refused([](ContextLosses& table) { table.lengths.pop_back(); });
  refused([](ContextLosses& table) { table.lengths = {1, 3, 2, 4}; });
  refused([](ContextLosses& table) { table.losses[1][2].pop_back(); });
  refused([](ContextLosses& table) { table.losses.clear(); });
  for (const double share : {0.0, -1.0, 1.1}) CHECK_THROWS_AS(relative_contexts(toy(), share, kThreshold), UsageError);
}

}  // namespace engram::relative_context_test
