/// Scores by attention length against plain evaluations, and `engram lengths`.

#include "apps/studies/context/length_sweep.hpp"
#include "core/files/json.hpp"

#include <algorithm>
#include <cmath>

#include "apps/command_line/number_list.hpp"
#include "apps/run/evaluation/score.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/studies/context/length_report.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/studies/context/context_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::length_sweep_test {
namespace {

double plain(const StudiedRun& run, const ContextOptions& context, const SplitEvaluationOptions& way) {
  Runtime runtime({}, 1);
  TrainedModel trained(run.checkpoint, CheckpointKind::newest, runtime, DType::f64,
                       [&](ModelOptions& model) { context.apply(model, "test"); });
  const data::DataSet set = context_bench().set();
  return evaluate_split(trained, set.split("valid"), way).result.nll();
}

LengthCurve swept(const StudiedRun& run, const LengthSweepOptions& options) {
  Runtime runtime({}, 1);
  const data::DataSet set = context_bench().set();
  return sweep_lengths(run, set.split("valid"), options, runtime, DType::f64);
}

LengthCurve curve_of(const std::vector<std::pair<std::int64_t, double>>& points, std::int64_t trained) {
  LengthCurve curve;
  curve.run.config.model.family = ModelFamily::transformer_xl;
  curve.run.config.model.transformer_xl.memory = trained;
  for (const auto& [length, nll] : points) curve.points.push_back({.length = length, .nll = nll});
  return curve;
}

Arguments lengths(const std::vector<std::string>& runs, const Arguments& more) { return study("lengths", runs, more); }

}  // namespace

TEST_CASE("lengths: with memory every length is an evaluation with that memory") {
  const StudiedRun run = context_bench().open({"xl"}).front();
  const LengthCurve curve = swept(run, {.lengths = {5, 30}});
  REQUIRE(curve.points.size() == 3);  // and the 12 of training
  CHECK(curve.points[1].length == 12);
  CHECK(*curve.points[1].nll == Approx(plain(run, {}, {})).epsilon(1e-12));
  CHECK(*curve.points[0].nll == Approx(plain(run, {.memory = 5}, {})).epsilon(1e-12));
  CHECK(*curve.points[2].nll == Approx(plain(run, {.memory = 30}, {})).epsilon(1e-12));
  CHECK(*curve.points[0].nll != *curve.points[2].nll);
  CHECK(curve.points[2].keys == 40);

  const LengthCurve same = swept(run, {.lengths = {12}, .clamp = 6, .same_length = true, .exact = true});
  REQUIRE(same.points.size() == 1);
  const ContextOptions context{.memory = 12, .clamp = 6, .visibility = Visibility::last_memory};
  CHECK(*same.points[0].nll == Approx(plain(run, context, {.exact = true})).epsilon(1e-12));
  CHECK(same.points[0].keys == 12);
  CHECK(same.points[0].scored == context_bench().set().split("valid").size() - 1);
}

TEST_CASE("lengths: without memory every length is a window read from nothing") {
  const StudiedRun run = context_bench().open({"vanilla"}).front();
  const LengthCurve curve = swept(run, {.lengths = {3, 25}});
  REQUIRE(curve.points.size() == 3);
  CHECK(curve.points[1].length == 14);  // block and extension
  CHECK(curve.points[0].stride == 1);
  CHECK(curve.points[1].stride == 4);
  CHECK(curve.points[2].stride == 7);
  for (const LengthPoint& point : curve.points) {
    const SplitEvaluationOptions way{.window = static_cast<int>(point.length),
                                     .stride = static_cast<int>(point.stride)};
    CHECK(*point.nll == Approx(plain(run, {}, way)).epsilon(1e-12));
    CHECK(point.keys == point.length);
  }
  // A stride that is longer than a window would leave tokens out.
  const LengthCurve strided = swept(run, {.lengths = {3}, .stride = 5});
  CHECK(strided.points[0].stride == 3);
  CHECK(strided.points[1].stride == 5);
}

TEST_CASE("lengths: tables of positions end somewhere") {
  const StudiedRun learned = context_bench().open({"learned"}).front();
  const LengthCurve curve = swept(learned, {.lengths = {15, 16}});
  REQUIRE(curve.points.size() == 3);
  CHECK(curve.points[1].nll.has_value());
  CHECK_FALSE(curve.points[2].nll.has_value());
  CHECK_THAT(curve.points[2].note, ContainsSubstring("not possible") && ContainsSubstring("15 rows"));
  CHECK(summarise(curve, data::TokenKind::character, 0).best_length < 16);

  // Distances beyond those of a table of distances have its last one.
  const StudiedRun shaw = context_bench().open({"shaw"}).front();
  const LengthCurve distances = swept(shaw, {.lengths = {40}});
  CHECK(distances.points[0].note.empty());
  CHECK(distances.points[1].nll.has_value());
  CHECK_THAT(distances.points[1].note, ContainsSubstring("distances from 21 on"));
}

TEST_CASE("lengths: the smallest length within the tolerance of the best") {
  const LengthCurve curve = curve_of({{10, 2.0}, {20, 1.5}, {30, 1.4}, {40, 1.3995}, {50, 1.6}}, 20);
  const auto summary = [&](double tolerance) { return summarise(curve, data::TokenKind::word, tolerance); };
  CHECK(summary(0).init == Approx(std::exp(1.5)));
  CHECK(summary(0).best == Approx(std::exp(1.3995)));
  CHECK(summary(0).best_length == 40);
  CHECK(summary(0).attention_length == 40);
  CHECK(summary(0.01).attention_length == 30);
  CHECK(summary(0.5).attention_length == 20);
  CHECK(summary(100).attention_length == 10);
  CHECK(summarise(curve, data::TokenKind::character, 0).best == Approx(1.3995 / std::log(2)));
}

TEST_CASE("lengths: lists of numbers are whole, above 0 and in order") {
  CHECK(parse_lengths("96,32,64,32", "x") == std::vector<std::int64_t>{32, 64, 96});
  CHECK(parse_shares("0.5,1,0.1", "x") == std::vector<double>{0.5, 1, 0.1});
  for (const char* wrong : {"", "1,", ",1", "1,,2", "0", "-3", "1.5", "4 5"})
    CHECK_THROWS_AS(parse_lengths(wrong, "x"), UsageError);
  for (const char* wrong : {"", "0", "1.01", "-1", "nan", "0.5,"})
    CHECK_THROWS_AS(parse_shares(wrong, "x"), UsageError);
  CHECK(lengths_up_to(20, 20, 70) == std::vector<std::int64_t>{20, 40, 60});
  CHECK_THROWS_AS(lengths_up_to(20, 20, 19), UsageError);
}

TEST_CASE("lengths: table, one object, CSV and drawing have every run") {
  const std::string csv = (context_bench() / "lengths.csv").string(), svg = (context_bench() / "lengths.svg").string();
  const Arguments few{"--lengths", "4,20", "--tokens", "300", "--csv", csv, "--svg", svg};
  const ProcessResult table = run_engram(lengths({"xl", "vanilla", "learned"}, few));
  INFO(table.err);
  REQUIRE(table.exit_code == 0);
  CHECK_THAT(table.out, ContainsSubstring("xl       memory") && ContainsSubstring("vanilla  windows") &&
                            ContainsSubstring("within 0.001 of it") &&
                            ContainsSubstring("learned, not possible: the table of positions has 15 rows"));
  CHECK_THAT(table.err, ContainsSubstring("lengths: vanilla, length 20: bpc"));
  const std::string lines = get_file(csv);
  CHECK(lines.starts_with("run,reads,training_length,length,keys,stride,scored,nll,bpc,seconds,note\n"));
  CHECK(std::ranges::count(lines, '\n') == 1 + 3 * 3);
  CHECK_THAT(lines, ContainsSubstring("learned,windows,10,20,20,5,0,,,0.000,not possible"));
  const XmlElement drawing = read_xml(get_file(svg));
  REQUIRE(drawing.all("polyline").size() == 3);
  // A y axis from 0 would show flat lines.
  for (const XmlElement* label : drawing.all("text")) CHECK(label->text != "0");

  Arguments as_json = lengths({"xl", "learned"}, {"--lengths", "4,20", "--json", "--tolerance", "0.5"});
  const ProcessResult result = run_engram(as_json);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json object = nlohmann::json::parse(result.out);
  CHECK(object.at("score") == "bpc");
  CHECK(object.at("tolerance") == 0.5);
  const nlohmann::json& xl = object.at("runs").at(0);
  for (const char* key : {"name", "checkpoint", "step", "reads", "training_length", "init", "best", "best_length",
                          "attention_length", "points"})
    CHECK(xl.contains(key));
  CHECK(xl.at("training_length") == 12);
  CHECK(xl.at("init") == xl.at("points").at(1).at("bpc"));
  CHECK(object.at("runs").at(1).at("points").at(2).at("possible") == false);
  CHECK(object.at("runs").at(1).at("points").at(2).at("bpc").is_null());
}

TEST_CASE("lengths: what has no attention length is refused before anything is read", "[night]") {
  const auto refused = [](const Arguments& arguments, const std::vector<std::string>& parts) {
    const ProcessResult result = run_engram(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    for (const std::string& part : parts) CHECK_THAT(result.err, ContainsSubstring(part));
    CHECK(result.err.find("length 4:") == std::string::npos);
  };
  refused(lengths({"xl", "spans"}, {"--lengths", "4"}), {"'spans'", "all_attention"});
  refused(lengths({"xl"}, {"--lengths", "4,x"}), {"--lengths", "4,x"});
  refused(lengths({"xl"}, {"--lengths", "4", "--step", "3"}), {"--lengths", "--step"});
  refused(lengths({"vanilla"}, {"--lengths", "4,50", "--tokens", "50"}), {"below the number of tokens, 50", "got 50"});
  refused(lengths({"xl"}, {"--lengths", "4,50", "--tokens", "500"}),
          {"below the number of tokens of each of the ten streams, 50", "got 50", "--exact"});
  // No list of so many lengths is made.
  refused(lengths({"xl"}, {"--step", "1", "--longest", "1000000000000", "--tokens", "500"}),
          {"below the number of tokens, 500", "got 1000000000000", "--longest"});
  refused(lengths({"xl"}, {"--lengths", "4", "--stride", "2"}), {"--stride", "without memory"});
  refused(lengths({"vanilla"}, {"--lengths", "4", "--exact"}), {"--exact", "with memory"});
  refused(lengths({"xl"}, {"--lengths", "4", "--dtype", "i32"}), {"--dtype", "i32"});
  CHECK(run_engram(lengths({"nothing"}, {"--lengths", "4"})).exit_code == 1);
}

TEST_CASE("studied runs: names are the last parts of paths, unless two end alike") {
  const auto opened = context_bench().open({"xl", "vanilla/checkpoint", "learned/checkpoint"});
  CHECK(opened[0].name == "xl");
  CHECK(opened[1].name == context_bench().run("vanilla/checkpoint"));
  CHECK(opened[0].training_length() == 12);
  CHECK(opened[1].training_length() == 14);
  CHECK(opened[2].training_length() == 10);
  CHECK_THROWS_AS(context_bench().open({"xl", "xl/"}), UsageError);
}

}  // namespace engram::harness::length_sweep_test
