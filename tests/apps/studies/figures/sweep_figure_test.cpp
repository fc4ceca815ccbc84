/// What a sweep measured, drawn: means and spreads against numbers worked by hand, series, bars, and what is left out.

#include "apps/studies/figures/sweep_figure.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "apps/report/csv_table.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/studies/sweeps/sweep_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::sweep_figure_test {
namespace {

struct WrittenRun {
  std::string variant;
  int seed, slots, layers;
  std::string valid, speed, outcome = "done";
};

/// A folder as a sweep leaves it, with figures that can be worked by hand.
struct WrittenSweep : TemporaryFolder {
  explicit WrittenSweep(const std::vector<WrittenRun>& runs) {
    std::string table = "variant,seed,folder,valid_bpc,tokens_per_second,outcome\n";
    for (const WrittenRun& run : runs) {
      const std::string folder = text(run.variant, "-seed-", run.seed);
      std::filesystem::create_directory(path() / folder);
      put_file(path() / folder / "config.toml",
               text("[model]\nfamily = \"all_attention\"\nslots = ", run.slots, "\nlayers = ", run.layers,
                    "\n[training]\nseed = ", run.seed, "\n"));
      table += text(run.variant, ",", run.seed, ",", folder, ",", run.valid, ",", run.speed, ",", run.outcome, "\n");
    }
    put_file(path() / "runs.csv", table);
  }
};

const std::vector<WrittenRun>& grid() {
  static const std::vector<WrittenRun> runs{
      {"s4", 1, 4, 2, "2.0", "100"},         {"s4", 2, 4, 2, "2.2", "110"},  {"s4", 3, 4, 2, "2.7", "120"},
      {"s16", 1, 16, 2, "1.5", "50"},        {"s16", 2, 16, 2, "1.7", "60"}, {"s16", 3, 16, 2, "", "70", "diverged"},
      {"s64", 1, 64, 2, "", "30", "waiting"}};
  return runs;
}

Figure figure_of(const WrittenSweep& sweep, const SweepFigureRequest& request = {}) {
  return sweep_figure(SweepFolder(sweep.path()), request);
}
std::string refusal(const WrittenSweep& sweep, const SweepFigureRequest& request) {
  return message_of<UsageError>([&] { figure_of(sweep, request); });
}

}  // namespace

TEST_CASE("figure sweep: mean and range over seeds against the key that varies, and what is left out") {
  const WrittenSweep sweep(grid());
  const Figure figure = figure_of(sweep);
  REQUIRE(figure.panels.size() == 1);
  const Plot& plot = figure.panels[0];
  CHECK_FALSE(plot.bars);
  CHECK(plot.x.title == "slots");
  CHECK(plot.y.title == "bits per character, valid");
  CHECK(plot.x.ticks == std::vector<double>{4, 16, 64});
  REQUIRE(plot.series.size() == 1);
  const std::vector<PlotPoint>& points = plot.series[0].points;
  REQUIRE(points.size() == 2);
  CHECK(points[0].x == 4);
  CHECK(points[0].y == Approx(2.3));
  REQUIRE(points[0].up);
  CHECK(points[0].up->first == 2.0);
  CHECK(points[0].up->second == 2.7);
  CHECK(points[0].runs == 3);
  CHECK(points[1].y == Approx(1.6));
  CHECK(points[1].runs == 2);
  CHECK(figure.what == "mean of 2 to 3 seeds, whiskers from the least to the most");
  CHECK(figure.left_out == std::vector<std::string>{"s16-seed-3: diverged", "s64-seed-1: waiting"});
  CHECK_THAT(table_of(figure), ContainsSubstring("s64-seed-1: waiting") && ContainsSubstring("1.6"));
}

TEST_CASE("figure sweep: the standard deviation is that of a sample") {
  const WrittenSweep sweep(grid());
  const Figure figure = figure_of(sweep, {.spread = SeedSpread::deviation});
  const std::vector<PlotPoint>& points = figure.panels[0].series[0].points;
  // 2.0, 2.2, 2.7 around 2.3: 0.09 + 0.01 + 0.16 = 0.26, over 2.
  const double deviation = std::sqrt(0.13);
  REQUIRE(points[0].up);
  CHECK(points[0].up->first == Approx(2.3 - deviation));
  CHECK(points[0].up->second == Approx(2.3 + deviation));
  CHECK_THAT(figure.what, ContainsSubstring("one standard deviation"));
  CHECK_FALSE(figure_of(sweep, {.spread = SeedSpread::none}).panels[0].series[0].points[0].up);
}

TEST_CASE("figure sweep: another key makes series, alone or by name, and runs of different keys share no point") {
  const WrittenSweep sweep(
      {{"a", 1, 4, 2, "2", "10"}, {"b", 1, 8, 2, "1", "10"}, {"c", 1, 4, 3, "4", "10"}, {"d", 1, 8, 3, "3", "10"}});
  for (const std::vector<std::string>& by : {std::vector<std::string>{}, {"layers"}}) {
    const Plot plot = figure_of(sweep, {.x = "slots", .by = by}).panels[0];
    REQUIRE(plot.series.size() == 2);
    CHECK(plot.series[0].name == "layers 2");
    CHECK(plot.series[1].name == "layers 3");
    CHECK(plot.series[1].points[1].x == 8);
    CHECK(plot.series[1].points[1].y == 3);
  }
  CHECK(figure_of(sweep, {.x = "slots", .where = {{"layers", "3"}}}).panels[0].series.size() == 1);
  CHECK_THAT(refusal(sweep, {.x = "slots", .by = {"model.slots"}}),
             ContainsSubstring("--by must name all keys") && ContainsSubstring("model.layers"));
  CHECK_THAT(refusal(sweep, {.x = "slots", .where = {{"layers", "9"}}}),
             ContainsSubstring("values of model.layers: 2, 3"));
}

TEST_CASE("figure sweep: bars by variant, and where a key's values are no numbers") {
  const WrittenSweep sweep(grid());
  const Plot plot = figure_of(sweep, {.x = "variant"}).panels[0];
  CHECK(plot.bars);
  CHECK(plot.x.names == std::vector<std::string>{"s4", "s16", "s64"});
  CHECK(plot.series[0].points[1].x == 1);
  CHECK(plot.series[0].points[1].y == Approx(1.6));
  const Plot bars = figure_of(sweep, {.bars = true}).panels[0];
  CHECK(bars.bars);
  CHECK(bars.x.names == std::vector<std::string>{"4", "16", "64"});
}

TEST_CASE("figure sweep: a figure against another has points that spread both ways, with labels") {
  const WrittenSweep sweep(grid());
  const Figure figure = figure_of(sweep, {.metrics = {"valid_bpc", "tokens_per_second"}, .x = "tokens_per_second"});
  REQUIRE(figure.panels.size() == 2);
  const PlotSeries& series = figure.panels[0].series[0];
  CHECK_FALSE(series.joined);
  REQUIRE(series.points.size() == 2);
  CHECK(series.points[0].label == "s4");
  CHECK(series.points[0].x == Approx(110));
  REQUIRE(series.points[0].across);
  CHECK(series.points[0].across->first == 100);
  CHECK(series.points[0].across->second == 120);
  CHECK(figure_of(sweep, {.x = "tokens_per_second", .label = "slots"}).panels[0].series[0].points[1].label == "16");
}

TEST_CASE("figure sweep: names that there are not, and keys that do not vary, are told with those there are") {
  const WrittenSweep sweep(grid());
  CHECK_THAT(refusal(sweep, {.metrics = {"valid_bp"}}),
             ContainsSubstring("the nearest is 'valid_bpc'") && ContainsSubstring("tokens_per_second"));
  CHECK_THAT(refusal(sweep, {.x = "slot"}), ContainsSubstring("the nearest is 'model.slots'"));
  CHECK_THAT(refusal(sweep, {.x = "layers"}),
             ContainsSubstring("must be a key that varies, got model.layers, which is 2 in all runs"));
  CHECK_THAT(refusal(sweep, {.by = {"nothing"}}), ContainsSubstring("--by must be a key"));
  const TemporaryFolder empty;
  CHECK_THAT(message_of<UsageError>([&] { SweepFolder{empty.path()}; }), ContainsSubstring("without a runs.csv"));
  const WrittenSweep waiting({{"a", 1, 4, 2, "", "", "waiting"}, {"b", 1, 8, 2, "", "", "waiting"}});
  CHECK_THAT(refusal(waiting, {}), ContainsSubstring("must have been measured"));
}

TEST_CASE("figure sweep: logarithmic axes leave out what has no place on them") {
  const WrittenSweep sweep({{"a", 1, 0, 2, "2", "10"}, {"b", 1, 8, 2, "1", "10"}});
  FigureStyle style;
  style.log_x = true;
  const Figure figure = styled(figure_of(sweep), style);
  CHECK(figure.panels[0].series[0].points.size() == 1);
  CHECK_THAT(figure.left_out.back(), ContainsSubstring("not above 0"));
  FigureStyle cut;
  cut.y_range = {0.5, 1.5};
  CHECK_THAT(styled(figure_of(sweep), cut).left_out.back(), ContainsSubstring("1 point of 2 outside of the y axis"));
  const WrittenSweep zeros({{"a", 1, 4, 2, "0", "10"}, {"b", 1, 8, 2, "0", "10"}});
  style.log_y = true;
  CHECK_THAT(message_of<UsageError>([&] { styled(figure_of(zeros), style); }), ContainsSubstring("got nothing"));
}

TEST_CASE("figure: a real sweep as the command draws it", "[night]") {
  const ProcessResult trained = run_engram(
      bench().command("drawn", {"--vary", "model.slots=3,7", "--seeds", "4,5", "--set", "schedule.steps=12"}));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string folder = (bench() / "drawn").string(), svg = (bench() / "drawn.svg").string();
  const std::string csv = (bench() / "drawn.csv").string();
  const ProcessResult result = run_engram({"figure", "sweep", folder, "--out", svg, "--csv", csv, "--width", "88mm"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("mean of 2 seeds"));
  const CsvTable swept = parse_csv(get_file(bench() / "drawn" / "sweep.csv"), "sweep");
  const CsvTable drawn = parse_csv(get_file(csv), "drawn");
  REQUIRE(drawn.rows.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto number = [](const CsvTable& table, std::size_t row, const char* name) {
      return std::stod(table.rows[row][table.column(name)]);
    };
    CHECK(number(drawn, i, "x") == (i == 0 ? 3 : 7));
    CHECK(number(drawn, i, "y") == Approx(number(swept, i, "valid_bpc")).margin(2e-6));
    CHECK(number(drawn, i, "least") == Approx(number(swept, i, "valid_bpc_least")).margin(2e-6));
    CHECK(number(drawn, i, "most") == Approx(number(swept, i, "valid_bpc_most")).margin(2e-6));
  }
  const std::string first = get_file(svg);
  CHECK(read_xml(first).attributes.at("width") == "88mm");
  CHECK(run_engram({"figure", "sweep", folder, "--out", svg, "--width", "88mm", "--json"}).exit_code == 0);
  CHECK(get_file(svg) == first);
  // Curves of the same: seeds are one line with a band.
  const ProcessResult curves =
      run_engram({"figure", "curves", folder, "--metric", "train_nll", "--out", svg, "--x", "tokens", "--json"});
  INFO(curves.err);
  REQUIRE(curves.exit_code == 0);
  const nlohmann::json object = nlohmann::json::parse(curves.out);
  const nlohmann::json& series = object.at("panels").at(0).at("series");
  REQUIRE(series.size() == 2);
  CHECK(series[0].at("name") == "slots-3");
  CHECK(series[0].at("points").at(0).at("runs") == 2);
  CHECK(series[0].at("points").at(0).at("x") == 5 * 4 * 40);
  put_file(bench() / "other.svg", "not a drawing");
  CHECK(run_engram({"figure", "sweep", folder, "--out", (bench() / "other.svg").string()}).exit_code == 2);
  CHECK(get_file(bench() / "other.svg") == "not a drawing");
}

}  // namespace engram::harness::sweep_figure_test
