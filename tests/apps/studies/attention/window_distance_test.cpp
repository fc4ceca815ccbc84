/// How far back the heads of the Transformer with product-key memory look in their windows: the study and `engram
/// attention` against the executable definition, and what memories with batch norms must not change.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "apps/run/model/runtime.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/studies/attention/distance_report.hpp"
#include "apps/studies/attention/distance_study.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_host.hpp"

namespace engram::harness::window_distance_test {
namespace {

using Vector = std::vector<double>;

/// A model in the memory of a runtime that has the values of another one.
struct StudyModel {
  Runtime runtime{{}, 1};
  ParameterStore store;
  ProductKeyTransformer model;
  StudyModel(PlacedHost& placed, const ProductKeyTransformerOptions& options) : model(options) {
    collect(model, store);
    store.place(runtime.backend(), DType::f64, 3);
    for (const auto& [name, parameter] : store.parameters()) {
      const Vector values = placed.value(name).data;
      runtime.backend().copy(parameter->value().raw(), values.data(), parameter->value().bytes(),
                             CopyKind::host_to_device);
    }
  }
};

/// The means of every head by the definition, window by window; layer by layer.
std::vector<HeadDistances> defined(PlacedHost& placed, const std::vector<std::int32_t>& tokens, std::int64_t block) {
  const reference::HostTransformer model = placed.definition();
  std::vector<HeadDistances> means;
  for (std::int64_t layer = 0; layer < std::ssize(model.layers); ++layer)
    for (std::int64_t head = 0; head < model.heads; ++head)
      means.push_back(
          {.layer = layer, .head = head, .probability = Vector(static_cast<std::size_t>(block)), .entropy = 0});
  const auto count = static_cast<double>(tokens.size());
  for (auto first = tokens.begin(); first != tokens.end();) {
    const auto length = std::min<std::int64_t>(block, tokens.end() - first);
    std::vector<reference::Array64> layers;
    reference::host_log_probabilities(model, {first, first + length}, &layers);
    first += length;
    for (HeadDistances& head : means)
      for (std::int64_t query = 0; query < length; ++query)
        for (std::int64_t key = 0; key <= query; ++key) {
          const double weight = layers[static_cast<std::size_t>(head.layer)].at(head.head, query, key);
          head.probability[static_cast<std::size_t>(query - key)] += weight / count;
          head.entropy -= weight * std::log2(weight) / count;
          head.distance += weight * static_cast<double>(query - key) / count;
        }
  }
  return means;
}

TEST_CASE("attention in windows is that of the definition, every window from nothing") {
  const std::vector<std::int32_t> tokens{1, 4, 2, 0, 3, 3, 1, 2, 4, 0, 6, 5, 5, 2, 1, 6, 0, 3, 2, 4, 1, 1, 5};
  for (const HostVariant& variant : host_variants()) {
    CAPTURE(variant.name);
    PlacedHost placed(variant.options);
    placed.spread(11);
    ProductKeyTransformerOptions options = variant.options;
    options.dropout = options.attention_dropout = 0.3;  // must not matter
    StudyModel made(placed, options);
    for (const std::int64_t block : {9, 4, 1}) {
      DistanceStudy study(Placed<ProductKeyTransformer>{made.model, made.runtime, DType::f64});
      Vector sums;
      study.on_rows([&sums](const HeadDistances&, std::int64_t, std::span<const double> row) {
        sums.push_back(std::accumulate(row.begin(), row.end(), 0.0));
      });
      study.read(tokens, block);
      CHECK(study.queries() == std::ssize(tokens));
      CHECK(sums.size() == 4 * tokens.size());
      for (const double sum : sums) CHECK(sum == Approx(1).epsilon(1e-12));
      const std::vector<HeadDistances> heads = study.heads(), expected = defined(placed, tokens, block);
      REQUIRE(heads.size() == 4);
      for (std::size_t head = 0; head < heads.size(); ++head) {
        CAPTURE(block, head);
        CHECK((heads[head].layer == expected[head].layer && heads[head].head == expected[head].head));
        REQUIRE(heads[head].probability.size() == expected[head].probability.size());
        for (std::size_t i = 0; i < heads[head].probability.size(); ++i)
          CHECK(heads[head].probability[i] == Approx(expected[head].probability[i]).margin(1e-12).epsilon(0));
        CHECK(heads[head].entropy == Approx(expected[head].entropy).margin(1e-12).epsilon(1e-10));
        CHECK(heads[head].distance == Approx(expected[head].distance).margin(1e-12).epsilon(1e-10));
      }
    }
  }
}

nlohmann::json shown(Arguments arguments) {
  const ProcessResult result = run_engram(std::move(arguments));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out);
}

TEST_CASE("a study reads as evaluation does: what comes after a token changes no weight of it") {
  const RunFolder folder;
  // Batch norm of queries is the default: of a training batch it would take the statistics of all tokens.
  const TrainingRunOptions options = memory_run(folder, "run", {"product_key.value_dropout=0.4"});
  run_training(options, never());
  Runtime runtime({}, 1);
  TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f64);
  const data::DataSet data = data::DataSet::open(options.data);
  std::vector<std::int32_t> tokens(19);
  data.split("valid").beginning(19).copy(0, 19, tokens.data());
  const auto rows_of = [&](std::int64_t count) {
    std::vector<Vector> rows;
    DistanceStudy study(trained.placed_as<ProductKeyTransformer>());
    study.on_rows([&rows](const HeadDistances&, std::int64_t position, std::span<const double> row) {
      if (position < 12) rows.emplace_back(row.begin(), row.begin() + position + 1);
    });
    study.read(std::span(tokens).first(static_cast<std::size_t>(count)), 20);
    return rows;
  };
  const std::vector<Vector> early = rows_of(12), late = rows_of(19);
  REQUIRE((early.size() == 6 * 12 && late.size() == early.size()));
  for (std::size_t row = 0; row < early.size(); ++row)
    for (std::size_t i = 0; i < early[row].size(); ++i)
      CHECK(early[row][i] == Approx(late[row][i]).margin(1e-11).epsilon(0));
}

TEST_CASE("command line: engram attention shows heads of windows by distance, on every device", "[night]") {
  const RunFolder folder;
  run_training(memory_run(folder, "run"), never());
  const std::string run = (folder / "run").string(), data = folder.data().string(), csv = (folder / "d.csv").string(),
                    svg = (folder / "d.svg").string();
  const ProcessResult table = run_engram({"attention", run, "--text", "bread go\nbee an age"});
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.out, ContainsSubstring("19 tokens") && ContainsSubstring("in windows of 20, each from nothing"));

  const nlohmann::json all = shown(
      {"attention", run, "--data", data, "--split", "test", "--tokens", "50", "--csv", csv, "--svg", svg, "--json"});
  CHECK((all.at("tokens") == 50 && all.at("window") == 20 && !all.contains("term")));
  REQUIRE(all.at("heads").size() == 6);
  const Vector row = all.at("heads").at(5).at("probability_by_distance").get<Vector>();
  CHECK(row.size() == 20);
  CHECK(std::accumulate(row.begin(), row.end(), 0.0) == Approx(1).epsilon(1e-5));
  CHECK_NOTHROW(read_xml(get_file(svg)));
  std::istringstream lines(get_file(csv));
  std::string line;
  std::getline(lines, line);
  CHECK(line == "layer,head,distance,probability");
  double sum = 0;
  while (std::getline(lines, line)) sum += std::stod(line.substr(line.rfind(',') + 1));
  CHECK(sum == Approx(6).epsilon(1e-4));

  for (const Device& device : other_devices()) {
    CAPTURE(text(device));
    const Arguments there{"attention", run, "--data", data, "--tokens", "45", "--dtype", "f64", "--json"};
    Arguments on_device = there;
    on_device.insert(on_device.end(), {"--device", text(device)});
    const auto expected = shown(there).at("heads"), found = shown(on_device).at("heads");
    REQUIRE(found.size() == expected.size());
    for (std::size_t head = 0; head < found.size(); ++head) {
      for (const char* mean : {"entropy_bits", "distance_positions"})
        CHECK(found[head][mean].get<double>() == Approx(expected[head][mean].get<double>()).epsilon(1e-9));
      const Vector here = expected[head]["probability_by_distance"].get<Vector>(),
                   other = found[head]["probability_by_distance"].get<Vector>();
      REQUIRE(here.size() == other.size());
      for (std::size_t i = 0; i < here.size(); ++i) CHECK(other[i] == Approx(here[i]).margin(1e-10).epsilon(0));
    }
  }
  const auto refused = [&](const Arguments& arguments, const std::string& what) {
    const ProcessResult result = run_engram(arguments);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring(what));
  };
  refused({"attention", run, "--text", "go", "--term", "a"}, "--term is for models of the family transformer_xl");
  refused({"attention", run, "--text", "go", "--rows", "3"},
          "--rows is for models of the families all_attention and recurrent");
  refused({"attention", run}, "one of --text, --file and --data");
}

}  // namespace
}  // namespace engram::harness::window_distance_test
