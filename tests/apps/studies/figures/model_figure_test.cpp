/// Heads side by side and offsets of several models, against what `engram attention` says of the same.

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "apps/commands/figure_arguments.hpp"
#include "apps/report/csv_table.hpp"
#include "apps/report/plot.hpp"
#include "apps/run/training/training_run.hpp"
#include "apps/studies/figures/head_figure.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::model_figure_test {
namespace {

struct TrainedRuns {
  RunFolder characters;
  ArticleFolder articles;
  std::string heads, first, second, data = characters.data().string(), words = articles.data().string();

  TrainedRuns() {
    TrainingRunOptions options = run_options(characters, "heads");
    options.overrides = {"schedule.steps=6"};
    run_training(options, never());
    heads = options.out.string();
    options = recurrent_run(articles, "first", {"schedule.steps=4"});
    run_training(options, never());
    first = options.out.string();
    options = recurrent_run(articles, "second", {"schedule.steps=4", "model.readout=attention", "model.window=3"});
    run_training(options, never());
    second = options.out.string();
  }
  std::string file(const char* name) const { return (characters / name).string(); }
};
const TrainedRuns& runs() {
  static const TrainedRuns made;
  return made;
}

std::string output_of(const Arguments& arguments) {
  const ProcessResult result = run_engram(arguments);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}
std::string refused(const Arguments& arguments) {
  const ProcessResult result = run_engram(arguments);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  return result.err;
}

/// "position,kind,index" of one head and its weight as written.
std::map<std::string, std::string> weights_in(const std::string& bytes, const std::string& layer,
                                              const std::string& head) {
  const CsvTable table = parse_csv(bytes, "weights");
  std::map<std::string, std::string> weights;
  const auto field = [&](const std::vector<std::string>& row, const char* name) { return row[table.column(name)]; };
  for (const std::vector<std::string>& row : table.rows)
    if (layer.empty() || (field(row, "layer") == layer && field(row, "head") == head))
      weights[field(row, "position") + "," + field(row, "kind") + "," + field(row, "index")] = field(row, "weight");
  return weights;
}

}  // namespace

TEST_CASE("figure heads: each map has the weights that engram attention writes of that head", "[night]") {
  const TrainedRuns& with = runs();
  const std::string svg = with.file("heads.svg"), csv = with.file("heads.csv"), one = with.file("one.csv");
  const std::string said = output_of({"figure", "heads", with.heads, "--heads", "0:1,1:0", "--data", with.data,
                                      "--tokens", "90", "--rows", "20", "--out", svg, "--csv", csv});
  CHECK_THAT(said, ContainsSubstring("weights of the last 20 of 90 tokens"));
  for (const auto& [layer, head] : {std::pair("0", "1"), std::pair("1", "0")}) {
    output_of({"attention", with.heads, "--data", with.data, "--tokens", "90", "--rows", "20", "--layer", layer,
               "--head", head, "--csv", one});
    const auto expected = weights_in(get_file(one), "", "");
    CHECK(expected.size() > 100);
    CHECK(weights_in(get_file(csv), layer, head) == expected);
  }
  const XmlElement root = read_xml(get_file(svg));
  std::string all;
  for (const XmlElement* text : root.all("text")) all += text->text + "\n";
  for (const char* label : {"layer 0, head 1\n", "layer 1, head 0\n", "positions back\n", "slots\n", "weight\n"})
    CHECK_THAT(all, ContainsSubstring(label));
}

TEST_CASE("figure heads: titles of maps do not touch in a narrow figure, which has fewer maps side by side") {
  const TrainedRuns& with = runs();
  const std::string svg = with.file("narrow.svg");
  const auto titles = [&](const char* millimetres) {
    output_of({"figure", "heads", with.heads, "--heads", "0:0,0:1,1:0,1:1", "--data", with.data, "--tokens", "60",
               "--rows", "20", "--width", millimetres, "--out", svg});
    const XmlElement root = read_xml(get_file(svg));
    std::vector<std::pair<double, double>> places;  // y and x
    for (const XmlElement* text : root.all("text"))
      if (text->text.starts_with("layer ")) places.emplace_back(text->number("y"), text->number("x"));
    REQUIRE(places.size() == 4);
    return places;
  };
  const auto wide = titles("160"), narrow = titles("80");
  for (const auto& [y, x] : wide) CHECK(y == wide.front().first);
  CHECK(narrow[0].first == narrow[1].first);
  CHECK(narrow[2].first == narrow[3].first);
  CHECK(narrow[1].first < narrow[2].first);
  const double title = printed_width("layer 0, head 0", 8);
  for (const auto& places : {wide, narrow})
    for (std::size_t i = 1; i < places.size(); ++i)
      if (places[i].first == places[i - 1].first) CHECK(places[i].second - places[i - 1].second > title);
}

TEST_CASE("figure offsets: lines of several models have the means that engram attention writes") {
  const TrainedRuns& with = runs();
  const std::string svg = with.file("offsets.svg"), csv = with.file("offsets.csv"), one = with.file("mean.csv");
  const std::string said = output_of({"figure", "offsets", with.first, with.second, "--data", with.words, "--name",
                                      "KVP,attention", "--out", svg, "--csv", csv});
  CHECK_THAT(said, ContainsSubstring("mean over"));
  const CsvTable drawn = parse_csv(get_file(csv), "drawn");
  std::size_t lines = 0;
  for (const auto& [run, name] : {std::pair(with.first, "KVP"), std::pair(with.second, "attention")}) {
    output_of({"attention", run, "--data", with.words, "--mean-csv", one});
    const CsvTable expected = parse_csv(get_file(one), "means");
    for (const std::vector<std::string>& row : expected.rows) {
      REQUIRE(lines < drawn.rows.size());
      const std::vector<std::string>& point = drawn.rows[lines++];
      CHECK(point[drawn.column("series")] == name);
      CHECK(point[drawn.column("x")] == row[0]);
      CHECK(std::stod(point[drawn.column("y")]) == Approx(std::stod(row[1])).epsilon(1e-5));
    }
  }
  CHECK(lines == drawn.rows.size());
  CHECK(read_xml(get_file(svg)).all("polyline").size() == 5);  // two of the legend, the axes, two lines
  // Models with heads have a line too: the mean over them, which lies on the text and on slots.
  const nlohmann::json object = nlohmann::json::parse(
      output_of({"figure", "offsets", with.heads, "--data", with.data, "--tokens", "120", "--out", svg, "--json"}));
  double sum = 0;
  for (const nlohmann::json& point : object.at("panels").at(0).at("series").at(0).at("points")) {
    CHECK(point.at("x").get<double>() < 0);
    sum += point.at("y").get<double>();
  }
  CHECK(sum > 0.2);
  CHECK(sum < 1);
}

TEST_CASE("figure: options of other kinds, heads and lengths that are none are refused in one line", "[night]") {
  const TrainedRuns& with = runs();
  const std::string out = with.file("refused.svg");
  CHECK_THAT(refused({"figure", "curves", with.heads, "--out", out, "--heads", "0:0"}),
             ContainsSubstring("--heads is for heads, got curves"));
  CHECK_THAT(
      refused({"figure", "heads", with.heads, "--out", out, "--heads", "0:9", "--data", with.data, "--tokens", "40"}),
      ContainsSubstring("got 0:9") && ContainsSubstring("it has 0:0, 0:1, 1:0, 1:1"));
  CHECK_THAT(refused({"figure", "heads", with.heads, "--out", out, "--heads", "0:0"}),
             ContainsSubstring("one of --text, --file and --data"));
  CHECK_THAT(refused({"figure", "heads", with.heads, "--out", out}), ContainsSubstring("must have --heads"));
  CHECK_THAT(refused({"figure", "curves", with.heads, "--out", out, "--smooth", "4"}),
             ContainsSubstring("an odd number"));
  CHECK_THAT(refused({"figure", "curves", with.heads, "--out", out, "--y-range", "3,2"}),
             ContainsSubstring("the lower first"));
  CHECK_THAT(refused({"figure", "something", with.heads, "--out", out}),
             ContainsSubstring("must be curves, sweep, heads or offsets"));
  CHECK_THAT(refused({"figure", "sweep", with.heads, "--out", out}), ContainsSubstring("without a runs.csv"));
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(parse_paper_length("25.4mm", "--width") == Approx(72));
  CHECK(parse_paper_length("100", "--width") == parse_paper_length("100mm", "--width"));
  CHECK(parse_paper_length("250pt", "--width") == Approx(250));
  for (const char* const wrong : {"", "mm", "3", "1e9", "12cm", "nan"})
    CHECK_THROWS_AS(parse_paper_length(wrong, "--width"), UsageError);
  CHECK(parse_heads("0:1,2:s3") == std::vector<HeadPlace>{{0, 1, false}, {2, 3, true}});
  for (const char* const wrong : {"", "1", "1:", ":1", "0:1,", "0:1,0:1", "-1:0", "0:x", "0:s"})
    CHECK_THROWS_AS(parse_heads(wrong), UsageError);
}

}  // namespace engram::harness::model_figure_test
