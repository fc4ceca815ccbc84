/// How far back the heads of a Transformer-XL look: `engram attention` against a plain computation from the layers'
/// inputs ([transformer-xl 6.8]), and its table and files.

#include "apps/studies/attention/distance_study.hpp"
#include "core/files/json.hpp"

#include <map>
#include <numeric>
#include <sstream>

#include "apps/studies/attention/distance_report.hpp"
#include "core/error.hpp"
#include "nn/past/segment_memory.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_xl.hpp"
#include "tests/nn/xl_variants.hpp"

namespace engram::harness::distance_study_test {
namespace {

using Vector = std::vector<double>;

/// Two layers, numbers of the size of 0.3 in every parameter.
TransformerXlOptions study_options() {
  TransformerXlOptions options = small_xl(PositionKind::relative);
  options.layers = 2;
  options.memory = 5;
  options.dropout = options.attention_dropout = options.word_dropout = 0.3;  // must not matter
  return options;
}

/// A model in the memory of a runtime that has the values of another one.
struct StudyModel {
  Runtime runtime{{}, 1};
  ParameterStore store;
  TransformerXlModel model;
  explicit StudyModel(PlacedXl& placed) : model(placed.model.options()) {
    collect(model, store);
    store.place(runtime.backend(), DType::f64, 3);
    for (const auto& [name, parameter] : store.parameters()) {
      const Vector values = placed.value(name).data;
      runtime.backend().copy(parameter->value().raw(), values.data(), parameter->value().bytes(),
                             CopyKind::host_to_device);
    }
  }
};

Vector times(const reference::Array64& matrix, const double* x) {
  Vector y(static_cast<std::size_t>(matrix.axis(0)));
  for (std::int64_t row = 0; row < matrix.axis(0); ++row)
    for (std::int64_t column = 0; column < matrix.axis(1); ++column)
      y[static_cast<std::size_t>(row)] += matrix.at(row, column) * x[column];
  return y;
}

/// What goes into a layer at every position, with the memory carried from block to block. Blocks no longer than it.
std::vector<Vector> inputs_of(PlacedXl& placed, const Ids& tokens, std::int64_t block, std::size_t layer) {
  std::vector<Vector> inputs;
  ModelPast past = placed.memory();
  const std::int64_t width = placed.model.options().width;
  for (std::size_t first = 0; first < tokens.size(); first += static_cast<std::size_t>(block)) {
    const std::size_t end = std::min(tokens.size(), first + static_cast<std::size_t>(block));
    placed.run({tokens.begin() + std::ptrdiff_t(first), tokens.begin() + std::ptrdiff_t(end)}, past);
    const Vector states = to_host(placed.backend, dynamic_cast<SegmentMemory&>(*past[layer]).states()).data;
    for (std::size_t i = end - first; i > 0; --i) {
      const auto row = states.end() - static_cast<std::ptrdiff_t>(i) * width;
      inputs.emplace_back(row, row + width);
    }
  }
  return inputs;
}

/// The means of one head by the definition, [transformer-xl 1.3, 1.5], number by number. `term`: 0 is all of them.
HeadDistances defined(PlacedXl& placed, const Ids& tokens, std::int64_t block, std::int64_t layer, std::int64_t head,
                      char term) {
  const TransformerXlOptions& options = placed.model.options();
  const std::vector<Vector> inputs = inputs_of(placed, tokens, block, static_cast<std::size_t>(layer));
  const std::string name = text("layers.", layer, ".attention.");
  const auto bias = [&](const std::string& which) {
    return placed.has(name + which + "_bias") ? placed.value(name + which + "_bias")
                                              : placed.value("position_biases." + which);
  };
  const Vector u = bias("content").data, v = bias("position").data;
  const reference::Array64 wq = placed.value(name + "query"), wk = placed.value(name + "key"),
                           wr = placed.value(name + "position");
  HeadDistances means;
  const auto count = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t query = 0; query < count; ++query) {
    const std::int64_t start = query / block * block;
    const std::int64_t oldest =
        options.visibility == Visibility::all ? start - options.memory : query - options.memory + 1;
    const Vector q = times(wq, inputs[std::size_t(query)].data());
    Vector scores;  // by distance
    for (std::int64_t key = query; key >= std::max<std::int64_t>(0, oldest); --key) {
      const std::int64_t distance = query - key;
      const Vector k = times(wk, inputs[std::size_t(key)].data());
      const auto clamped = options.clamp > 0 ? std::min(distance, options.clamp) : distance;
      const Vector r = times(wr, reference::xl_sinusoid(static_cast<double>(clamped), options.width).data());
      double score = 0;
      for (std::int64_t d = head * options.depth; d < (head + 1) * options.depth; ++d) {
        const auto i = static_cast<std::size_t>(d);
        if (term == 0 || term == 'a') score += q[i] * k[i];
        if (term == 0 || term == 'b') score += q[i] * r[i];
        if (term == 0 || term == 'c') score += u[i] * k[i];
        if (term == 0 || term == 'd') score += v[i] * r[i];
      }
      scores.push_back(std::exp(score / std::sqrt(static_cast<double>(options.depth))));
    }
    const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    if (means.probability.size() < scores.size()) means.probability.resize(scores.size());
    for (std::size_t distance = 0; distance < scores.size(); ++distance) {
      const double p = scores[distance] / sum;
      means.probability[distance] += p / static_cast<double>(count);
      means.entropy -= p * std::log2(p) / static_cast<double>(count);
      means.distance += p * static_cast<double>(distance) / static_cast<double>(count);
    }
  }
  return means;
}

TEST_CASE("attention by distance is that of the definition, of all scores and of each of their terms") {
  TransformerXlOptions tied = study_options(), own = study_options();
  own.tie_position_biases = false;
  own.visibility = Visibility::last_memory;
  own.clamp = 2;
  const Ids tokens = random_ids(23, 5, 4);
  const std::vector<std::int32_t> ids(tokens.begin(), tokens.end());
  const std::map<char, std::optional<ScoreTerm>> terms{{char(0), std::nullopt},
                                                       {'a', ScoreTerm::content},
                                                       {'b', ScoreTerm::position},
                                                       {'c', ScoreTerm::content_bias},
                                                       {'d', ScoreTerm::position_bias}};
  for (const TransformerXlOptions& options : {tied, own}) {
    PlacedXl placed(options);
    placed.spread(6);
    StudyModel made(placed);
    for (const auto& [letter, term] : terms) {
      DistanceStudy study({made.model, made.runtime, DType::f64}, term);
      std::vector<std::int64_t> heard;
      study.read(ids, 4, [&heard](std::int64_t read, std::int64_t) { heard.push_back(read); });
      CHECK(heard == std::vector<std::int64_t>{4, 8, 12, 16, 20, 23});
      CHECK(study.queries() == 23);
      const std::vector<HeadDistances> heads = study.heads();
      REQUIRE(heads.size() == 4);
      for (const HeadDistances& head : heads) {
        CAPTURE(name_of(options.visibility), int(letter), head.layer, head.head);
        const HeadDistances expected = defined(placed, tokens, 4, head.layer, head.head, letter);
        REQUIRE(head.probability.size() >= expected.probability.size());
        for (std::size_t i = 0; i < head.probability.size(); ++i)
          CHECK(head.probability[i] ==
                Approx(i < expected.probability.size() ? expected.probability[i] : 0).margin(1e-12).epsilon(0));
        CHECK(std::accumulate(head.probability.begin(), head.probability.end(), 0.0) == Approx(1).epsilon(1e-12));
        CHECK(head.entropy == Approx(expected.entropy).epsilon(1e-10));
        CHECK(head.distance == Approx(expected.distance).epsilon(1e-10));
      }
    }
  }
}

TEST_CASE("every kind of positions has attention by distance, relative ones alone have terms") {
  const std::vector<std::int32_t> ids{1, 4, 2, 0, 3, 3, 1, 2, 4, 0};
  for (const XlVariant& variant : xl_variants()) {
    CAPTURE(variant.name);
    PlacedXl placed(variant.options);
    placed.spread(2);
    StudyModel made(placed);
    DistanceStudy study({made.model, made.runtime, DType::f64});
    study.read(ids, 4);
    for (const HeadDistances& head : study.heads())
      CHECK(std::accumulate(head.probability.begin(), head.probability.end(), 0.0) == Approx(1).epsilon(1e-12));
    const auto with_term = [&] { DistanceStudy({made.model, made.runtime, DType::f64}, ScoreTerm::position); };
    if (variant.options.positions == PositionKind::relative)
      CHECK_NOTHROW(with_term());
    else
      CHECK_THROWS_WITH(with_term(), ContainsSubstring("--term") &&
                                         ContainsSubstring(std::string(name_of(variant.options.positions))));
  }
}

TEST_CASE("a picture of attention by distance has a row for every head, and means of neighbours where it is wide") {
  HeadDistances near{.layer = 0, .head = 1, .probability = Vector(1500, 0.0)};
  near.probability[0] = 0.75;
  near.probability[2] = 0.25;
  const std::string csv = csv_of(DistanceReport{.heads = {near}});
  CHECK(csv == "layer,head,distance,probability\n0,1,0,0.75\n0,1,2,0.25\n");
  const std::string svg = svg_of(DistanceReport{.heads = {near, near}, .term = "heads & distances"});
  CHECK_THAT(svg, ContainsSubstring("heads &amp; distances") &&
                      ContainsSubstring("the mean of 3 neighbouring distances") && ContainsSubstring("0, 1"));
  CHECK_NOTHROW(read_xml(svg));
  CHECK_THROWS_AS(svg_of(DistanceReport{}), UsageError);
}

TEST_CASE("command line: engram attention shows a Transformer-XL's heads by distance", "[night]") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.config = put_file(folder / "xl.toml",
                            "[model]\nfamily = \"transformer_xl\"\nlayers = 2\nwidth = 16\nheads = 2\ninner = 24\n"
                            "memory = 12\n[optimizer]\nkind = \"adam\"\n[schedule]\nrate = 0.01\nsteps = 2\n"
                            "[training]\nbatch = 4\nblock = 8\n");
  run_training(options, never());
  const std::string run = options.out.string(), data = folder.data().string(), csv = (folder / "d.csv").string(),
                    svg = (folder / "d.svg").string();
  const ProcessResult shown = run_engram({"attention", run, "--text", "bread go\nbee an age"});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.out, ContainsSubstring("19 tokens") && ContainsSubstring("entropy") && !ContainsSubstring("slots"));

  const auto object = [](std::vector<std::string> arguments) {
    const ProcessResult result = run_engram(std::move(arguments));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return nlohmann::json::parse(result.out);
  };
  const nlohmann::json all = object(
      {"attention", run, "--data", data, "--split", "test", "--tokens", "50", "--csv", csv, "--svg", svg, "--json"});
  CHECK(all.at("tokens") == 50);
  REQUIRE(all.at("heads").size() == 4);
  const Vector row = all.at("heads").at(3).at("probability_by_distance").get<Vector>();
  CHECK(row.size() == 20);  // 12 of memory and 8 of the block
  CHECK(std::accumulate(row.begin(), row.end(), 0.0) == Approx(1).epsilon(1e-5));
  CHECK_NOTHROW(read_xml(get_file(svg)));
  // Four heads, whose probabilities sum to 1.
  std::istringstream lines(get_file(csv));
  std::string line;
  std::getline(lines, line);
  double sum = 0;
  while (std::getline(lines, line)) sum += std::stod(line.substr(line.rfind(',') + 1));
  CHECK(sum == Approx(4).epsilon(1e-4));

  for (const Device& device : other_devices()) {
    CAPTURE(text(device));
    const Arguments there{"attention", run, "--data",  data,  "--tokens", "20",
                          "--term",    "d", "--dtype", "f64", "--json"};
    Arguments on_device = there;
    on_device.insert(on_device.end(), {"--device", text(device)});
    const auto expected = object(there).at("heads"), found = object(on_device).at("heads");
    REQUIRE(found.size() == expected.size());
    for (std::size_t head = 0; head < found.size(); ++head)
      for (const char* mean : {"entropy_bits", "distance_positions"})
        CHECK(found[head][mean].get<double>() == Approx(expected[head][mean].get<double>()).epsilon(1e-9));
  }

  const nlohmann::json term = object({"attention", run, "--data", data, "--term", "d", "--mem-len", "30",
                                      "--same-length", "--clamp-len", "9", "--json"});
  CHECK(term.at("term") == "d");
  CHECK(term.at("heads").at(0).at("probability_by_distance").size() == 30);

  const auto refused = [&](std::vector<std::string> arguments, const std::string& what) {
    const ProcessResult result = run_engram(std::move(arguments));
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring(what));
  };
  refused({"attention", run, "--text", "go", "--layer", "1"}, "--layer is for models of the family all_attention");
  refused({"attention", run, "--text", "go", "--data", data}, "--data");
  refused({"attention", run, "--text", "go", "--term", "e"}, "--term");
  const TrainingRunOptions other = run_options(folder, "other");
  run_training(other, never());
  refused({"attention", other.out.string(), "--text", "go", "--term", "a"}, "--term is for models");
}

}  // namespace
}  // namespace engram::harness::distance_study_test
