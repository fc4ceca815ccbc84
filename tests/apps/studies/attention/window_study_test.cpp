/// Where recurrent models look in their window: means of known weights, articles against texts of their own, and
/// `engram attention` with its tables and pictures.

#include "apps/studies/attention/window_study.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <numeric>
#include <sstream>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/blocks/segment_evaluation.hpp"
#include "apps/report/bar_chart.hpp"
#include "apps/studies/attention/window_report.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::window_study_test {
namespace {

using Vector = std::vector<double>;
using Ids = std::vector<std::int32_t>;

RecurrentOptions small_options(ReadoutKind readout, std::int64_t window) {
  RecurrentOptions options;
  options.vocabulary = 9;
  options.embedding_width = 4;
  options.width = 6;
  options.readout = readout;
  options.window = window;
  options.init_range = 0.9;
  options.carry = Carry::none;  // must not matter: evaluation carries
  return options;
}

struct StudyModel {
  Runtime runtime{{}, 1};
  ParameterStore store;
  RecurrentModel model;
  explicit StudyModel(const RecurrentOptions& options) : model(options) {
    collect(model, store);
    store.place(runtime.backend(), DType::f64, 7);
  }
  WindowStudy study(WindowStudy::Rows rows) { return {{model, runtime, DType::f64}, rows}; }
};

Ids random_tokens(std::int64_t count, std::uint64_t seed) {
  reference::RandomArrays random(seed);
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(static_cast<std::int32_t>(random.below(9)));
  return ids;
}

void check_equal(const Vector& found, const Vector& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-12).epsilon(0));
}

TEST_CASE("window means: weights, entropy, offset and newest shares of known weights") {
  WindowMeans means(3, -1);
  means.add(Vector{0.5, 0.25, 0.25});
  means.add(Vector{0, 0, 1});
  CHECK(means.positions() == 2);
  check_equal(means.weights(), {0.25, 0.125, 0.625});
  CHECK(means.entropy() == Approx(0.75 * std::log(2)).epsilon(1e-14));  // 3/2 ln 2 and 0
  CHECK(means.mean_offset() == Approx(-1.625).epsilon(1e-14));
  CHECK(means.newest_share(1) == Approx(0.625).epsilon(1e-14));
  CHECK(means.newest_share(2) == Approx(0.75).epsilon(1e-14));
  CHECK(means.newest_share(5) == Approx(1).epsilon(1e-14));
  CHECK(csv_of(means) == "offset,weight\n-3,0.25\n-2,0.125\n-1,0.625\n");
  CHECK_THROWS_WITH(means.add(Vector{1, 0}), ContainsSubstring("3 weights, got 2"));

  WindowMeans itself(3, 0);
  itself.add(Vector{0.5, 0.25, 0.25});
  CHECK(itself.mean_offset() == Approx(-1.25).epsilon(1e-14));
  CHECK(csv_of(itself) == "offset,weight\n-2,0.5\n-1,0.25\n0,0.25\n");

  const WindowMeans none(3, -1);
  CHECK_THROWS_WITH(csv_of(none), ContainsSubstring("3") && ContainsSubstring("full"));
  CHECK_THROWS_AS(svg_of(none, "none"), UsageError);
}

TEST_CASE("attention of windows: articles in streams count as texts of their own, resets leave short windows out") {
  const Ids tokens = random_tokens(40, 3);
  const std::vector<std::int64_t> starts{0, 11, 13, 14, 29};
  const data::ArticleSplit split(data::TokenView(tokens), starts, 8);
  for (const ReadoutKind readout : {ReadoutKind::attention, ReadoutKind::key_value, ReadoutKind::key_value_predict,
                                    ReadoutKind::recurrent_memory}) {
    for (const std::int64_t window : {std::int64_t{1}, std::int64_t{4}}) {
      CAPTURE(name_of(readout), window);
      StudyModel made(small_options(readout, window));
      const std::int64_t itself = readout == ReadoutKind::recurrent_memory ? 1 : 0;
      // Each article alone: the start token, then all of its tokens but the last.
      Vector sums(static_cast<std::size_t>(window));
      double entropy = 0;
      std::int64_t full = 0;
      std::vector<WindowRow> third;
      for (std::int64_t article = 0; article < split.articles(); ++article) {
        Ids text{8};
        for (std::int64_t i = 0; i + 1 < split.length(article); ++i)
          text.push_back(tokens[static_cast<std::size_t>(starts[static_cast<std::size_t>(article)] + i)]);
        WindowStudy alone = made.study({0, 100});
        alone.read(text, 3);
        REQUIRE(alone.rows().size() == text.size());
        for (std::size_t at = 0; at < text.size(); ++at) {
          const WindowRow& row = alone.rows()[at];
          CHECK(row.position == std::int64_t(at));
          CHECK(row.token == text[at]);
          CHECK(row.seen == std::min(window, std::int64_t(at) + itself));
          // What is not seen has no weight, and what is seen has all of it.
          CHECK(std::accumulate(row.weights.begin(), row.weights.end() - row.seen, 0.0) == 0);
          CHECK(std::accumulate(row.weights.begin(), row.weights.end(), 0.0) ==
                Approx(row.seen > 0 ? 1 : 0).margin(1e-12));
          if (std::int64_t(at) + itself < window) continue;
          ++full;
          for (std::size_t i = 0; i < sums.size(); ++i) {
            sums[i] += row.weights[i];
            entropy -= row.weights[i] * std::log(row.weights[i]);
          }
        }
        if (article == 3) third = alone.rows();
      }
      for (double& sum : sums) sum /= double(full);

      for (const auto& [rows, block] : {std::pair(1, 40), {3, 4}, {7, 3}}) {
        CAPTURE(rows, block);
        WindowStudy study = made.study({starts[3], split.length(3)});
        data::ArticleEvaluation plan(split, block, rows);
        study.read(plan, rows);
        CHECK(study.positions() == 40);
        REQUIRE(study.means().positions() == full);
        check_equal(study.means().weights(), sums);
        CHECK(study.means().entropy() == Approx(entropy / double(full)).margin(1e-12));
        const Vector weights = study.means().weights();
        CHECK(std::accumulate(weights.begin(), weights.end(), 0.0) == Approx(1).epsilon(1e-12));
        REQUIRE(study.rows().size() == third.size());
        for (std::size_t i = 0; i < third.size(); ++i) {
          CHECK(study.rows()[i].token == third[i].token);
          CHECK(study.rows()[i].position == third[i].position);
          check_equal(study.rows()[i].weights, third[i].weights);
        }
      }
    }
  }
}

TEST_CASE("attention of windows: a text without articles in parts, and a score of zero looks everywhere alike") {
  const Ids tokens = random_tokens(61, 5);
  StudyModel made(small_options(ReadoutKind::key_value_predict, 5));
  const Parameter* const score = made.store.find("readout.score");
  REQUIRE(score != nullptr);
  const Vector zeros(static_cast<std::size_t>(score->value().count()));
  made.runtime.backend().copy(score->value().raw(), zeros.data(), score->value().bytes(), CopyKind::host_to_device);
  WindowStudy study = made.study({0, 7});
  data::SegmentEvaluation plan{data::TokenView(tokens), 4, 0, 2};
  study.read(plan, 2);
  // Two parts of 30 tokens, of which the last is a target only, and 5 positions without a full window in each.
  CHECK(study.positions() == 58);
  CHECK(study.means().positions() == 48);
  check_equal(study.means().weights(), Vector(5, 0.2));
  CHECK(study.means().entropy() == Approx(std::log(5)).epsilon(1e-12));
  CHECK(study.means().mean_offset() == Approx(-3).epsilon(1e-12));
  REQUIRE(study.rows().size() == 7);
  for (std::size_t i = 0; i < 7; ++i) CHECK(study.rows()[i].token == tokens[i]);
  check_equal(study.rows()[2].weights, {0, 0, 0, 0.5, 0.5});
}

TEST_CASE("readouts without weights have no attention to show") {
  for (const ReadoutKind readout : {ReadoutKind::identity, ReadoutKind::n_gram})
    CHECK_THROWS_WITH(WindowStudy::check(small_options(readout, 4)),
                      ContainsSubstring("model.readout") && ContainsSubstring(std::string(name_of(readout))));
}

TEST_CASE("a bar chart has a bar for every number, as high as it is") {
  BarChart chart;
  chart.title = "a < b";
  chart.x_title = "offset";
  chart.y_title = "weight";
  chart.bars = {{"-2", 0.1}, {"-1", 0.4}};
  const auto drawn = [&] {
    SvgCanvas canvas(bar_chart_size(chart), chart.title);
    draw_bar_chart(canvas, 0, 0, chart);
    return read_xml(canvas.document());
  };
  const XmlElement root = drawn();
  std::map<std::string, double> heights;  // by tooltip
  for (const XmlElement* rect : root.all("rect"))
    for (const XmlElement* title : rect->all("title")) heights[title->text] = rect->number("height");
  REQUIRE(heights.size() == 2);
  CHECK(heights.at("-1: 0.4") == Approx(chart.height));  // the axis ends there
  CHECK(heights.at("-2: 0.1") == Approx(chart.height / 4));
  chart.bars[0].value = -1;
  CHECK_THROWS_WITH(drawn(), ContainsSubstring("'-2'") && ContainsSubstring("-1"));
  chart.bars.clear();
  CHECK_THROWS_WITH(drawn(), ContainsSubstring("bars"));
}

/// Runs over a folder of articles that engram prepare made.
struct ArticleRuns : TemporaryFolder {
  ArticleRuns() {
    reference::RandomArrays random(2);
    const char* const words[] = {"an", "age", "ago", "bee", "big", "bread", "dear", "edge", "fire", "go"};
    for (const char* part : {"train", "valid", "test"}) {
      std::filesystem::create_directories(*this / "texts" / part);
      for (int article = 0; article < 6; ++article) {
        std::string text;
        for (int i = 0; i < 30; ++i) text += std::string(words[random.below(10)]) + (i % 7 == 6 ? ".\n" : " ");
        put_file(*this / "texts" / part / text_name(article), text);
      }
    }
    data::PrepareOptions options;
    options.kind = data::TokenKind::word;
    options.articles.emplace();
    options.articles->paths = {*this / "texts"};
    options.out = *this / "data";
    data::prepare(options);
  }
  static std::string text_name(int article) { return std::to_string(article) + ".txt"; }
  std::string data() const { return (*this / "data").string(); }

  std::string train(const std::string& name, const std::string& readout) const {
    TrainingRunOptions options;
    options.config = put_file(*this / (name + ".toml"),
                              "[model]\nfamily = \"recurrent\"\nembedding_width = 8\nwidth = 12\nwindow = 4\n" +
                                  readout + "\n[optimizer]\nkind = \"adam\"\n[schedule]\nrate = 0.01\nsteps = 2\n" +
                                  "[training]\nbatch = 2\nblock = 5\nseed = 3\n");
    options.data = *this / "data";
    options.out = *this / name;
    options.threads = 1;
    run_training(options, never());
    return options.out.string();
  }
};

struct CsvRow {
  std::string position, token;
  std::int64_t offset = 0;
  double weight = 0;
};

std::vector<CsvRow> rows_of(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  REQUIRE(line == "position,token,offset,weight");
  std::vector<CsvRow> rows;
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string offset, weight;
    CsvRow row;
    std::getline(std::getline(std::getline(std::getline(fields, row.position, ','), row.token, ','), offset, ','),
                 weight);
    row.offset = std::stoll(offset);
    row.weight = std::stod(weight);
    rows.push_back(row);
  }
  return rows;
}

TEST_CASE("command line: engram attention shows the windows of a recurrent model over articles", "[night]") {
  const ArticleRuns folder;
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const auto object = [](const Arguments& arguments) {
    const ProcessResult result = run_engram(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out);
  };
  const data::DataSet data = data::DataSet::open(folder.data());
  const data::ArticleSplit split(data, "test");
  for (const std::string readout : {"key_value_predict", "recurrent_memory"}) {
    CAPTURE(readout);
    const std::int64_t newest = readout == "recurrent_memory" ? 0 : -1;
    const std::string run = folder.train(readout, "readout = \"" + readout + "\"");
    const nlohmann::json all = object({"attention", run, "--data", folder.data(), "--split", "test", "--article", "2",
                                       "--rows", "9", "--csv", file("a.csv"), "--svg", file("a.svg"), "--mean-csv",
                                       file("m.csv"), "--mean-svg", file("m.svg"), "--json"});
    CHECK(all.at("readout") == readout);
    CHECK(all.at("positions") == split.tokens.size());
    CHECK(all.at("full_windows") == split.tokens.size() - split.articles() * (3 - newest));
    CHECK(all.at("offsets") == nlohmann::json({newest - 3, newest - 2, newest - 1, newest}));
    const Vector means = all.at("mean_weights").get<Vector>();
    CHECK(std::accumulate(means.begin(), means.end(), 0.0) == Approx(1).epsilon(1e-6));
    double offset = 0;
    for (std::size_t i = 0; i < 4; ++i) offset += means[i] * double(newest - 3 + std::int64_t(i));
    CHECK(all.at("mean_offset").get<double>() == Approx(offset).epsilon(1e-9));
    CHECK(all.at("newest_1").get<double>() == Approx(means[3]).epsilon(1e-9));
    CHECK(all.at("newest_5").get<double>() == Approx(1).epsilon(1e-6));
    CHECK(all.at("entropy_nats").get<double>() > 0);
    CHECK(all.at("entropy_nats").get<double>() <= std::log(4) + 1e-6);

    std::map<std::string, std::pair<std::int64_t, double>> sums;  // columns and weight by position
    std::map<std::string, std::string> names;
    for (const CsvRow& row : rows_of(get_file(file("a.csv")))) {
      ++sums[row.position].first;
      sums[row.position].second += row.weight;
      names[row.position] = row.token;
    }
    for (std::int64_t position = 0; position < 9; ++position) {
      CAPTURE(position);
      const std::int64_t seen = std::min<std::int64_t>(4, position + (newest == 0 ? 1 : 0));
      if (seen == 0) continue;
      CHECK(sums.at(std::to_string(position)).first == seen);
      CHECK(sums.at(std::to_string(position)).second == Approx(1).epsilon(1e-4));
      const std::int32_t id = position == 0 ? split.start : split.tokens[split.starts[2] + position - 1];
      // The start token is a line end, which a table shows as a sign.
      CHECK(names.at(std::to_string(position)) ==
            (id == split.start ? "\u23ce" : data.vocabulary().decode(std::array{id})));
    }
    CHECK(sums.size() == (newest == 0 ? 9u : 8u));

    CHECK_NOTHROW(read_xml(get_file(file("a.svg"))));
    CHECK_THAT(get_file(file("a.svg")), ContainsSubstring("article 2 of test"));
    CHECK_NOTHROW(read_xml(get_file(file("m.svg"))));
    std::istringstream lines(get_file(file("m.csv")));
    std::string line;
    std::getline(lines, line);
    for (std::size_t i = 0; i < 4; ++i) {
      std::getline(lines, line);
      CHECK(line.starts_with(std::to_string(newest - 3 + std::int64_t(i)) + ","));
      CHECK(std::stod(line.substr(line.find(',') + 1)) == Approx(means[i]).epsilon(1e-5));
    }
    const Arguments start{"attention", run, "--data", folder.data(), "--tokens", "40", "--dtype", "f64", "--json"};
    const nlohmann::json here = object(start);
    CHECK(here.at("positions") == 40);
    for (const Device& device : other_devices()) {
      CAPTURE(text(device));
      Arguments on_device = start;
      on_device.insert(on_device.end(), {"--device", text(device)});
      const nlohmann::json there = object(on_device);
      for (const char* mean : {"mean_offset", "entropy_nats", "newest_1"})
        CHECK(there.at(mean).get<double>() == Approx(here.at(mean).get<double>()).epsilon(1e-9));
    }
  }

  const std::string run = (folder / "key_value_predict").string();
  const ProcessResult shown = run_engram({"attention", run, "--text", "an age ago bee big bread dear"});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.out, ContainsSubstring("7 positions") && ContainsSubstring("3 of them with a full window") &&
                            ContainsSubstring("entropy") && ContainsSubstring("newest 5     100.0%"));
  const nlohmann::json two = object({"attention", run, "--text", "an age", "--csv", file("t.csv"), "--json"});
  CHECK(two.at("full_windows") == 0);
  CHECK(two.at("mean_weights").is_null());
  CHECK(rows_of(get_file(file("t.csv"))).size() == 1);  // the second word sees the first

  const auto refused = [&](const Arguments& arguments, const std::string& what) {
    const ProcessResult result = run_engram(arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring(what));
  };
  refused({"attention", run, "--text", "an age", "--mean-csv", file("no.csv")}, "full");
  CHECK(!std::filesystem::exists(file("no.csv")));
  refused({"attention", run, "--data", folder.data(), "--article", "6"}, "--article must be below");
  refused({"attention", run, "--text", "an", "--article", "0"}, "--data");
  refused({"attention", run, "--text", "an", "--layer", "0"}, "--layer is for models of the family all_attention");
  refused({"attention", run, "--text", "an", "--term", "a"}, "--term is for models of the family transformer_xl");
  refused({"attention", folder.train("grams", "readout = \"n_gram\"\nparts = 3"), "--text", "an"}, "got n_gram");
}

}  // namespace
}  // namespace engram::harness::window_study_test
