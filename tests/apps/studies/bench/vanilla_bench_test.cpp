/// Table 9 of Transformer-XL: the formulas of [transformer-xl 6.7], and the book-keeping of the bench. Nothing here
/// compares times with expectations.

#include "apps/studies/bench/vanilla_bench.hpp"
#include "core/files/json.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "apps/run/cost/sliding_window_cost.hpp"
#include "apps/run/cost/transformer_xl_cost.hpp"
#include "apps/studies/bench/vanilla_report.hpp"
#include "core/error.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::vanilla_bench_test {
namespace {

VanillaBenchCase tiny_case() {
  VanillaBenchCase bench{"tiny", {}};
  bench.config.model.family = ModelFamily::transformer_xl;
  TransformerXlOptions& model = bench.config.model.transformer_xl;
  model.vocabulary = 9;
  model.layers = 2;
  model.width = 8;
  model.heads = 2;
  model.inner = 12;
  model.memory = 5;
  bench.config.training.batch = 2;
  return bench;
}

TEST_CASE("table 9: slowdowns by the formulas are those of the worked tables") {
  struct Row {
    std::int64_t length;
    std::int64_t paper, large_whole, large_short, large_cached, base_whole;
  };
  constexpr Row kRows[] = {{800, 363, 470, 239, 749, 459},
                           {1800, 773, 952, 334, 1593, 899},
                           {2800, 1409, 1379, 404, 2379, 1289},
                           {3800, 1874, 1777, 469, 3133, 1658}};
  constexpr LayerSizes kLarge{1024, 3072}, kBase{512, 2048};
  for (const Row& row : kRows) {
    CAPTURE(row.length);
    const double large = sliding_window_flops(kLarge, row.length, FutureKeys::computed);
    CHECK(std::llround(large / released_xl_flops(kLarge, row.length, row.length)) == row.large_whole);
    CHECK(std::llround(large / released_xl_flops(kLarge, row.length, 128)) == row.large_short);
    CHECK(std::llround(large / cached_xl_flops(kLarge, row.length)) == row.large_cached);
    CHECK(std::llround(sliding_window_flops(kBase, row.length, FutureKeys::computed) /
                       released_xl_flops(kBase, row.length, row.length)) == row.base_whole);
    REQUIRE(published_slowdown(row.length).has_value());
    CHECK(*published_slowdown(row.length) == static_cast<double>(row.paper));
    // What skipping future keys saves is half of the scores and of the sums over values.
    CHECK(large - sliding_window_flops(kLarge, row.length, FutureKeys::skipped) ==
          2.0 * static_cast<double>(row.length * row.length) * 1024);
  }
  CHECK_FALSE(published_slowdown(100).has_value());
}

TEST_CASE("table 9: the formulas are those of section 9.1 at the same settings") {
  TransformerXlOptions model = tiny_case().config.model.transformer_xl;
  const LayerSizes layer{model.width, model.inner};
  const auto layers = static_cast<double>(model.layers), width = static_cast<double>(model.width);
  for (const std::int64_t length : {7, 100}) {
    const TransformerXlOptions vanilla = vanilla_of(model, length);
    const auto window = static_cast<double>(length);
    // Of the exact count of visible pairs, A (A + 1) / 2, the formula drops the 1.
    CHECK(forward_flops(vanilla, {.segment = length}).layers * window / layers ==
          Approx(sliding_window_flops(layer, length, FutureKeys::skipped) + 2 * window * width));
    CHECK(released_flops(vanilla, {.segment = length}).layers * window / layers ==
          Approx(sliding_window_flops(layer, length, FutureKeys::computed)));
    model.memory = length;
    for (const std::int64_t segment : {length, std::int64_t{3}})
      CHECK(released_flops(model, {.segment = segment}).layers / layers ==
            Approx(released_xl_flops(layer, length, segment)));
    TransformerXlOptions exact = model;
    exact.visibility = Visibility::last_memory;
    CHECK(cached_flops(exact, {.segment = 3}).layers / layers == Approx(cached_xl_flops(layer, length)));
  }
}

TEST_CASE("the vanilla model of a Transformer-XL has its sizes, learned positions and no memory") {
  TransformerXlOptions model = tiny_case().config.model.transformer_xl;
  model.clamp = 3;
  model.visibility = Visibility::last_memory;
  model.memory_start = MemoryStart::zeros;
  const TransformerXlOptions vanilla = vanilla_of(model, 40);
  CHECK(vanilla.positions == PositionKind::absolute_learned);
  CHECK(vanilla.position_rows == 40);
  CHECK(vanilla.memory == 0);
  CHECK(vanilla.visibility == Visibility::all);
  CHECK(vanilla.clamp == 0);
  CHECK(vanilla.layers == model.layers);
  CHECK(vanilla.inner == model.inner);
  model.depth = 3;
  CHECK_THROWS_WITH(vanilla_of(model, 40), ContainsSubstring("depth") && ContainsSubstring("got 3"));
}

TEST_CASE("a bench against the vanilla model times every way at every length, and reports it", "[night]") {
  const VanillaBenchCase bench = tiny_case();
  Runtime runtime;
  const std::vector<VanillaComparison> found = bench_against_vanilla(bench, {20, 7, 800}, runtime, 2);
  REQUIRE(found.size() == 3);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].attention_length == (std::array{20, 7, 800}[i]));
    CHECK(found[i].vanilla_seconds > 0);
    REQUIRE(found[i].evaluations.size() == 4);
    for (std::size_t way = 0; way < 4; ++way) {
      const XlEvaluation& evaluation = found[i].evaluations[way];
      CHECK(evaluation.segment == (way % 2 == 0 ? found[i].attention_length : 128));
      CHECK(evaluation.cached == (way >= 2));
      CHECK(evaluation.seconds > 0);
      CHECK(found[i].slowdown(evaluation) == found[i].vanilla_seconds / evaluation.seconds);
    }
  }

  const std::string text = table_of(bench, found, 2);
  CHECK_THAT(text, ContainsSubstring("tiny: N=2 D=8 H=2 d_h=4 F=12 V=9 B=2\n") && ContainsSubstring("median of 2") &&
                       ContainsSubstring(" 363\n"));
  const nlohmann::json object = json_of(bench, found, 2);
  REQUIRE(object.at("lengths").size() == 3);
  CHECK_FALSE(object.at("lengths").at(1).contains("paper_slowdown"));
  const nlohmann::json& longest = object.at("lengths").at(2);
  CHECK(longest.at("paper_slowdown") == 363);
  CHECK(longest.at("vanilla_microseconds_a_token").get<double>() == found[2].vanilla_seconds * 1e6);
  const nlohmann::json& way = longest.at("evaluations").at(1);
  CHECK(way.at("segment") == 128);
  CHECK(way.at("slowdown").get<double>() == found[2].slowdown(found[2].evaluations[1]));
  CHECK(way.at("slowdown_by_formulas").get<double>() ==
        sliding_window_flops({8, 12}, 800, FutureKeys::computed) / released_xl_flops({8, 12}, 800, 128));
  CHECK(longest.at("evaluations").at(2).at("slowdown_by_formulas_skipping_future_keys").get<double>() ==
        sliding_window_flops({8, 12}, 800, FutureKeys::skipped) / cached_xl_flops({8, 12}, 800));
  const XmlElement drawn = read_xml(svg_of(bench, found));
  CHECK(drawn.all("polyline").size() == 9);  // four measured, four by formulas, the paper
}

TEST_CASE("a bench against the vanilla model refuses what it cannot compare") {
  Runtime runtime;
  const auto refusal = [&](const auto& change, std::vector<std::int64_t> lengths = {5}) {
    VanillaBenchCase bench = tiny_case();
    change(bench.config.model);
    try {
      bench_against_vanilla(bench, lengths, runtime, 1);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto nothing = [](ModelOptions&) {};
  CHECK_THAT(refusal([](ModelOptions& model) { model.family = ModelFamily::all_attention; }),
             ContainsSubstring("transformer_xl") && ContainsSubstring("all_attention"));
  CHECK_THAT(refusal([](ModelOptions& model) {
               model.transformer_xl.positions = PositionKind::shaw;
               model.transformer_xl.position_rows = 4;
             }),
             ContainsSubstring("positions") && ContainsSubstring("shaw"));
  CHECK_THAT(refusal([](ModelOptions& model) { model.transformer_xl.vocabulary = 0; }), ContainsSubstring("--vocab"));
  CHECK_THAT(refusal(nothing, {}), ContainsSubstring("--lengths"));
  CHECK_THAT(refusal(nothing, {5, 0}), ContainsSubstring("--lengths") && ContainsSubstring("got 0"));
  CHECK_THAT(refusal(nothing, {std::numeric_limits<std::int64_t>::max()}), ContainsSubstring("position_rows"));
}

}  // namespace
}  // namespace engram::harness::vanilla_bench_test
