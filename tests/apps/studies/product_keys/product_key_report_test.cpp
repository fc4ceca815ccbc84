/// `engram memory`, its table, object, CSV and picture, and what training reports of memories.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <sstream>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/training/product_key_metrics.hpp"
#include "apps/run/training/session.hpp"
#include "apps/studies/product_keys/product_key_report.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::product_key_report_test {
namespace {

using nlohmann::json;

struct ProductKeyBench : RunFolder {
  ProductKeyBench() {
    run_training(memory_run(*this, "own"), never());
    run_training(memory_run(*this, "shared", {"product_key.shared_values=true"}), never());
    run_training(memory_run(*this, "without", {"product_key.layers="}), never());
  }
  std::string path(const std::string& name) const { return (*this / name).string(); }
  ProcessResult memory(const std::string& run, const Arguments& more) const {
    Arguments arguments{"memory", path(run), "--data", data().string(), "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_engram(arguments);
  }
  json object(const std::string& run, Arguments more = {}) const {
    more.emplace_back("--json");
    const ProcessResult result = memory(run, more);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out);
  }
};

const ProductKeyBench& bench() {
  static const ProductKeyBench made;
  return made;
}

ProductKeyReport report_of(const std::vector<std::vector<double>>& shares, std::int64_t slots) {
  ProductKeyReport report{.checkpoint = "c", .data = "d", .split = "test", .heads = 1, .selected = 2, .rows = {}};
  for (const std::vector<double>& one : shares) {
    ProductKeyReport::Row row{.layer = static_cast<std::int64_t>(report.rows.size()) + 1, .metrics = {}, .shares = one};
    row.metrics.slots = slots;
    row.metrics.half_mass = row.metrics.most_mass = row.metrics.nearly_all_mass = 1;
    report.rows.push_back(row);
  }
  return report;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("memory: training reports nothing of models without memories", "[product-key]") {
  ProductKeyMetrics none{ModelOptions()};
  CHECK(none.note().empty());
  CHECK_FALSE(none.reads());
}

}  // namespace

TEST_CASE("memory: lengths of the rows that were read, and of the others", "[product-key]") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::bf16);
  Runtime runtime({}, 1);
  HeapAllocator heap(runtime.backend());
  Tensor table(Shape{4, 3}, dtype, runtime.backend().device(), heap);
  dispatch_storage(dtype, "test", [&]<class T>() {
    const float numbers[] = {3, 4, 9, 0, 0, 9, 6, -8, 9, 5, 12, 9};  // the nines are no part of the rows
    for (std::size_t i = 0; i < 12; ++i) table.data<T>()[i] = static_cast<T>(numbers[i]);
  });
  const auto norms_of = [&](auto&& was_read) { return row_norms({table, 2}, runtime.backend(), was_read); };
  const RowNorms even = norms_of([](std::int64_t row) { return row % 2 == 0; });
  CHECK(even.read == 7.5);
  CHECK(even.unread == 6.5);
  CHECK_FALSE(norms_of([](std::int64_t) { return true; }).unread);
  CHECK_FALSE(norms_of([](std::int64_t) { return false; }).read);
}

TEST_CASE("memory: rows that training has left alone, by the step that used them last", "[product-key]") {
  const IdleRows found = idle_rows(std::vector<std::int32_t>{0, 150, 149, 140, 139, 50, 49, 0}, 150);
  CHECK(found.all == 8);
  CHECK(found.never == 2);
  REQUIRE(found.longer.size() == 2);
  CHECK(found.longer[0].steps == 10);
  CHECK(found.longer[0].rows == 5);
  CHECK(found.longer[1].steps == 100);
  CHECK(found.longer[1].rows == 3);
  CHECK(idle_rows(std::vector<std::int32_t>{0, 10}, 10).longer.empty());
}

TEST_CASE("memory: a run that keeps the last uses of rows reports them, resumed or not; others do not",
          "[product-key][night]") {
  const json without = bench().object("own");
  CHECK_FALSE(without.at("memories").at(0).contains("training_never"));
  CHECK_THAT(bench().memory("own", {}).out, !ContainsSubstring("> 10"));

  const RunFolder folder;
  const auto object_of = [&](const std::string& run) {
    const ProcessResult result =
        run_engram({"memory", (folder / run).string(), "--data", folder.data().string(), "--threads", "1", "--json"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return json::parse(result.out);
  };
  const std::vector<std::string> last_use{"optimizer.table_last_use=true"};
  TrainingRunOptions options = memory_run(folder, "kept", last_use);
  run_training(options, never());
  const json kept = object_of("kept");
  const CheckpointFile file(folder / "kept" / "checkpoint" / "model.safetensors");
  for (const json& memory : kept.at("memories")) {
    // Adam has a second moment other than 0 in exactly the rows that were used.
    const std::string table = text("layers.", memory.at("layer").get<int>() - 1, ".memory.values.rows");
    const auto moments = file.bytes(file.at(text("optimizer/", table, ".second_moment")));
    const std::size_t row_bytes = moments.size() / kMemorySlots;
    std::int64_t never_used = 0;
    for (std::size_t row = 0; row < std::size_t(kMemorySlots); ++row)
      never_used += std::ranges::all_of(moments.subspan(row * row_bytes, row_bytes),
                                        [](std::byte byte) { return byte == std::byte{0}; });
    CHECK(memory.at("training_never") == never_used);
    REQUIRE(memory.at("training_idle").size() == 1);
    CHECK(memory.at("training_idle").at(0).at("steps") == 10);
    CHECK(memory.at("training_idle").at(0).at("rows").get<std::int64_t>() >= never_used);
  }
  TrainingRunOptions parts = memory_run(folder, "parts", last_use);
  CHECK_THROWS_AS(run_training(parts, after_steps(5)), Interrupted);
  parts.resume = true;
  run_training(parts, never());
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(object_of("parts").at("memories").at(i).at("training_idle") == kept.at("memories").at(i).at("training_idle"));
  const std::string table =
      run_engram({"memory", (folder / "kept").string(), "--data", folder.data().string(), "--threads", "1"}).out;
  CHECK_THAT(table, ContainsSubstring("> 10") && ContainsSubstring("never"));

  parts.overrides = {};  // not with the state of another
  parts.out = folder / "own";
  parts.resume = false;
  run_training(parts, never());
  parts.resume = true;
  parts.overrides = last_use;
  CHECK_THROWS_WITH(run_training(parts, never()), ContainsSubstring("optimizer.table_last_use"));
}

TEST_CASE("memory: one object has the figures of what evaluation reads", "[product-key]") {
  const json object = bench().object("own");
  CHECK(object.at("split") == "test");
  CHECK(object.at("step") == 12);
  CHECK(object.at("heads") == 2);
  CHECK(object.at("selected") == 3);
  CHECK_FALSE(object.contains("shared_table"));
  REQUIRE(object.at("memories").size() == 2);

  Runtime runtime({}, 1);
  TrainedModel trained(bench().path("own"), CheckpointKind::newest, runtime);
  const data::DataSet set = data::DataSet::open(bench().data());
  ModelProductKeyUsage usage(trained.config().model);
  evaluate_split(trained, set.split("test"), {}, {.reads = usage.reads()});
  for (std::size_t i = 0; i < 2; ++i) {
    const json& row = object.at("memories").at(i);
    const ProductKeyUsage::Metrics want = usage.memories()[i].usage.metrics();
    CHECK(row.at("layer") == usage.memories()[i].layer);
    CHECK(row.at("slots") == kMemorySlots);
    CHECK(row.at("positions") == want.positions);
    CHECK(row.at("untouched") == want.untouched);
    CHECK(row.at("kl_most").get<double>() == Approx(std::log(double(kMemorySlots))));
    const std::pair<const char*, double> figures[] = {{"usage", want.usage},
                                                      {"usage_by_weight", want.usage_by_weight},
                                                      {"top_usage", want.top_usage},
                                                      {"kl", want.kl},
                                                      {"kl_by_reads", want.kl_by_count},
                                                      {"gini", want.gini},
                                                      {"score_entropy", want.score_entropy},
                                                      {"top_weight", want.top_weight},
                                                      {"head_overlap", want.head_overlap},
                                                      {"repeated_reads", want.repeated_reads},
                                                      {"total_weight", want.total_weight}};
    for (const auto& [key, value] : figures) {
      CAPTURE(key);
      CHECK(row.at(key).get<double>() == Approx(value).epsilon(1e-9).margin(1e-12));
    }
    const Parameter* const table =
        trained.store().find(text("layers.", usage.memories()[i].layer - 1, ".memory.values.rows"));
    REQUIRE(table != nullptr);
    const RowNorms norms = row_norms({table->value(), table->shape()[1]}, runtime.backend(),
                                     [&](std::int64_t slot) { return usage.memories()[i].usage.was_read(slot); });
    REQUIRE((norms.read && norms.unread));
    CHECK(row.at("norm_read").get<double>() == Approx(*norms.read));
    CHECK(row.at("norm_unread").get<double>() == Approx(*norms.unread));
    CHECK(row.at("slots_of_50_percent") == want.half_mass);
    CHECK(row.at("slots_of_90_percent") == want.most_mass);
    CHECK(row.at("slots_of_99_percent") == want.nearly_all_mass);
  }
  const json few = bench().object("own", {"--tokens", "100", "--split", "valid", "--best"});
  CHECK(few.at("memories").at(0).at("positions") == 90);  // ten streams, the first token of each not scored
  CHECK(few.at("split") == "valid");
}

TEST_CASE("memory: a shared table has a row of its own", "[product-key]") {
  const json object = bench().object("shared");
  REQUIRE(object.at("memories").size() == 2);
  const json& all = object.at("shared_table");
  const auto of = [&](std::size_t memory, const char* key) {
    return object.at("memories").at(memory).at(key).get<double>();
  };
  CHECK(all.at("positions").get<double>() == of(0, "positions") + of(1, "positions"));
  CHECK(all.at("usage").get<double>() >= std::max(of(0, "usage"), of(1, "usage")));
  CHECK(all.at("usage").get<double>() <= of(0, "usage") + of(1, "usage"));
  CHECK(all.at("total_weight").get<double>() == Approx(of(0, "total_weight") + of(1, "total_weight")).epsilon(1e-9));
  CHECK_FALSE(all.contains("layer"));
}

TEST_CASE("memory: table, CSV and picture", "[product-key]") {
  const std::string csv = bench().path("memory.csv"), svg = bench().path("memory.svg");
  const ProcessResult table = bench().memory("shared", {"--csv", csv, "--svg", svg});
  INFO(table.err);
  REQUIRE(table.exit_code == 0);
  for (const char* heading : {"usage", "by weight", "top-1", "untouched", "KL", "of", "by reads", "Gini", "50%", "90%",
                              "99%", "entropy", "best one", "overlap", "repeated"})
    CHECK_THAT(table.out, ContainsSubstring(heading));
  CHECK_THAT(table.out, ContainsSubstring("\n1         144 ") && ContainsSubstring("\n3         144 ") &&
                            ContainsSubstring("\nall       144 ") && ContainsSubstring("4.9698") &&
                            ContainsSubstring("at most 1.0986, all 3 slots alike"));
  for (const std::string& line : lines_of(table.out)) {
    CAPTURE(line);
    CHECK((line.size() <= 110 || line.find(" at step ") != line.npos));  // fits a terminal
  }

  const json object = bench().object("shared");
  std::map<std::string, std::vector<double>> shares;
  double before = 0;
  const std::vector<std::string> lines = lines_of(get_file(csv));
  REQUIRE(lines.front() == "memory,rank,share,share_up_to");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    std::istringstream fields(lines[i]);
    std::string memory, rank, share, sum;
    std::getline(std::getline(std::getline(std::getline(fields, memory, ','), rank, ','), share, ','), sum);
    std::vector<double>& found = shares[memory];
    if (found.empty()) before = 0;
    CHECK((found.empty() || found.back() >= std::stod(share)));
    found.push_back(std::stod(share));
    CHECK(std::stoul(rank) == found.size());
    CHECK(std::stod(sum) == Approx(before + std::stod(share)).epsilon(1e-7));
    before = std::stod(sum);
  }
  REQUIRE(shares.size() == 3);
  const auto slots = [](const json& row) { return row.at("usage_by_weight").get<double>() * kMemorySlots; };
  CHECK(static_cast<double>(shares.at("1").size()) == Approx(slots(object.at("memories").at(0))));
  CHECK(static_cast<double>(shares.at("3").size()) == Approx(slots(object.at("memories").at(1))));
  CHECK(static_cast<double>(shares.at("all").size()) == Approx(slots(object.at("shared_table"))));

  const XmlElement drawing = read_xml(get_file(svg));
  CHECK(drawing.all("polyline").size() == 4);  // and that of even use
  CHECK(drawing.all("rect").size() >= 9);      // marks
  std::string written;
  for (const XmlElement* label : drawing.all("text")) written += label->text + "\n";
  CHECK_THAT(written, ContainsSubstring("memory of layer 1\n") && ContainsSubstring("memory of layer 3\n") &&
                          ContainsSubstring("the table, by all memories\n") &&
                          ContainsSubstring("every slot alike: 1 / slots\n") && ContainsSubstring("144 slots"));
}

TEST_CASE("memory: a picture of few slots, of one, and of weights that fall to nothing", "[product-key]") {
  CHECK(read_xml(svg_of(report_of({{1}}, 1))).all("polyline").size() == 2);
  const std::vector<double> steep{0.9, 0.1, 1e-30, 1e-38};
  const std::string drawn = svg_of(report_of({steep, {0.25, 0.25, 0.25, 0.25}}, 4));
  const XmlElement drawing = read_xml(drawn);
  CHECK(drawing.all("polyline").size() == 3);
  CHECK(drawn.find("nan") == drawn.npos);
  CHECK(drawn.find("inf") == drawn.npos);
  // Four powers of ten below even use, at the least.
  std::size_t labels = 0;
  for (const XmlElement* label : drawing.all("text")) labels += label->text.ends_with("%") ? 1 : 0;
  CHECK(labels <= 7);
}

TEST_CASE("memory: ranks are thinned by ratio", "[product-key]") {
  CHECK(thinned_ranks(1, 2) == std::vector<std::int64_t>{1});
  CHECK(thinned_ranks(3, 3) == std::vector<std::int64_t>{1, 2, 3});
  CHECK(thinned_ranks(100, 3) == std::vector<std::int64_t>{1, 10, 100});
  const std::vector<std::int64_t> many = thinned_ranks(1 << 20, kMostCsvRanks);
  CHECK(static_cast<std::int64_t>(many.size()) <= kMostCsvRanks);
  CHECK(many.size() > 1000);
  CHECK(many.front() == 1);
  CHECK(many.back() == 1 << 20);
  CHECK(std::ranges::adjacent_find(many, std::greater_equal<>()) == many.end());
  // In the CSV too: at most so many lines, the last up to all of the weight.
  const std::string csv = csv_of(report_of({std::vector<double>(5000, 1.0 / 5000)}, 5000));
  CHECK(std::ranges::count(csv, '\n') <= kMostCsvRanks + 1);
  CHECK_THAT(csv, ContainsSubstring("\n1,5000,0.0002,1\n"));
}

TEST_CASE("memory: what is refused", "[product-key][night]") {
  const auto refused = [](const ProcessResult& result, int code, const std::string& what) {
    INFO(result.err);
    CHECK(result.exit_code == code);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, ContainsSubstring(what));
  };
  refused(bench().memory("without", {}), 2,
          "memory: the model must have product-key memories, got one of family product_key");
  refused(bench().memory("own", {"--split", "all"}), 2, "a split must be train, valid or test, got 'all'");
  refused(bench().memory("own", {"--tokens", "15"}), 2, "at least 2 tokens");
  refused(bench().memory("nothing", {}), 1, "nothing");
  refused(run_engram({"memory", bench().path("own")}), 2, "--data");
  refused(run_engram({"memory", bench().path("own"), "--data", bench().path("no-data")}), 1, "no-data");
  const ProcessResult help = run_engram({"memory", "--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.out.size() < 6000);
}

TEST_CASE("memory: short validations report usage, KL and top-1 usage", "[product-key]") {
  const std::vector<json> lines = read_reports(bench() / "own" / "metrics.jsonl", "valid_short");
  REQUIRE(lines.size() == 3);  // 12 steps, every 4
  const data::DataSet set = data::DataSet::open(bench().data());
  const TrainingRunOptions options = memory_run(bench(), "own");
  const RunConfig config = resolved_config(load_run_config(options.config, {}), set);
  Runtime runtime({}, 1, config.training.seed);
  TrainingSession session(config, set, runtime, DType::f32);
  for (const json& line : lines) {
    for (int step = 0; step < 4; ++step) session.step();
    ModelProductKeyUsage usage(config.model);
    CHECK(session.validate({.reads = usage.reads()}).nll() == line.at("nll").get<double>());
    CHECK(line.at("memory_layers") == json({1, 3}));
    for (std::size_t i = 0; i < 2; ++i) {
      const ProductKeyUsage::Metrics found = usage.memories()[i].usage.metrics();
      CHECK(line.at("memory_usage").at(i) == found.usage);
      CHECK(line.at("memory_top_usage").at(i) == found.top_usage);
      CHECK(line.at("memory_kl").at(i) == found.kl);
      CHECK(found.positions == line.at("tokens"));
    }
  }
  for (const json& line : read_reports(bench() / "without" / "metrics.jsonl", "valid_short"))
    CHECK(line.dump().find("memory_") == std::string::npos);
}

}  // namespace engram::harness::product_key_report_test
