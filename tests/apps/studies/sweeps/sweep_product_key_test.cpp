/// What a sweep says about the product-key memories of its variants.

#include "apps/report/csv_table.hpp"
#include "apps/studies/sweeps/sweep_report.hpp"
#include "core/files/json.hpp"
#include "tests/apps/studies/sweeps/sweep_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::sweep_product_key_test {
namespace {

std::string host_config() {
  return R"([model]
family = "product_key"
layers = 3
width = 16
heads = 2
position_rows = 24
[product_key]
subkeys = 6
heads = 2
selected = 4
query_width = 8
[optimizer]
kind = "adam"
table_mode = "row_step"
table_rate = 0.01
[schedule]
rate = 0.01
steps = 12
[training]
batch = 4
block = 20
validate_every = 6
validate_blocks = 2
report_every = 6
checkpoint_every = 12
seed = 11
)";
}

std::string field(const CsvTable& table, std::size_t row, std::string_view column) {
  INFO(column);
  REQUIRE(table.column(column) < table.names.size());
  return table.rows.at(row).at(table.column(column));
}

CsvTable table_of(const std::filesystem::path& file) { return parse_csv(get_file(file), file.string()); }

nlohmann::json memories_of(const std::filesystem::path& run, const std::string& split) {
  const ProcessResult result =
      run_engram({"memory", run.string(), "--data", bench().data().string(), "--split", split, "--json"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out).at("memories");
}

}  // namespace

TEST_CASE("sweep: usage and divergence of memories are those of engram memory", "[night]") {
  const std::filesystem::path config = put_file(bench() / "host.toml", host_config());
  const Arguments command{"sweep",
                          "--config",
                          config.string(),
                          "--data",
                          bench().data().string(),
                          "--threads",
                          "1",
                          "--out",
                          (bench() / "memories").string(),
                          "--seeds",
                          "1,2",
                          "--variant",
                          "none",
                          "--variant",
                          "one:product_key.layers=[2]",
                          "--variant",
                          "two:product_key.layers=[1,2],optimizer.table_kind=row_adagrad,optimizer.table_mode=lazy",
                          "--test"};
  const ProcessResult result = run_engram(command);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("usage %") && ContainsSubstring("top-1 %") && ContainsSubstring("KL") &&
                             ContainsSubstring("test split") && ContainsSubstring(" / "));

  const CsvTable runs = table_of(bench() / "memories/runs.csv"), variants = table_of(bench() / "memories/sweep.csv");
  REQUIRE(runs.rows.size() == 6);
  REQUIRE(variants.rows.size() == 3);
  CHECK(field(runs, 0, "memory_layers").empty());
  CHECK(field(runs, 0, "memory_usage").empty());
  CHECK(field(runs, 0, "table_optimizer").empty());
  CHECK(field(variants, 0, "memory_kl").empty());
  CHECK(field(variants, 0, "memory_kl_most").empty());
  CHECK(field(variants, 0, "state") == "done");
  CHECK(field(runs, 2, "table_optimizer") == "adam row_step 0.01");
  CHECK(field(runs, 4, "table_optimizer") == "row_adagrad 0.01");
  CHECK(field(runs, 2, "token_kind") == "char");
  CHECK(field(runs, 2, "vocabulary") == std::to_string(data::DataSet::open(bench().data()).vocabulary().size()));
  CHECK(field(runs, 4, "memory_layers") == "1 2");

  // Of the test split, as `engram memory` says, to all digits that are written.
  double least = 1e9, most = 0;
  for (std::size_t run = 2; run < 4; ++run) {
    const nlohmann::json said = memories_of(bench() / "memories" / field(runs, run, "folder"), "test");
    REQUIRE(said.size() == 1);
    CHECK(field(runs, run, "memory_layers") == "2");
    CHECK(std::stod(field(runs, run, "memory_usage")) == Approx(said[0].at("usage").get<double>()).margin(6e-7));
    CHECK(std::stod(field(runs, run, "memory_top_usage")) ==
          Approx(said[0].at("top_usage").get<double>()).margin(6e-7));
    CHECK(std::stod(field(runs, run, "memory_kl")) == Approx(said[0].at("kl").get<double>()).margin(6e-7));
    least = std::min(least, std::stod(field(runs, run, "memory_kl")));
    most = std::max(most, std::stod(field(runs, run, "memory_kl")));
  }
  REQUIRE(least < most);
  CHECK(std::stod(field(variants, 1, "memory_kl")) == Approx((least + most) / 2).margin(1.1e-6));
  CHECK(std::stod(field(variants, 1, "memory_kl_least")) == least);
  CHECK(std::stod(field(variants, 1, "memory_kl_most")) == most);
  const nlohmann::json two = memories_of(bench() / "memories" / field(runs, 5, "folder"), "test");
  REQUIRE(two.size() == 2);
  const std::string both = field(runs, 5, "memory_kl");
  CHECK(std::stod(both) == Approx(two[0].at("kl").get<double>()).margin(6e-7));
  CHECK(std::stod(both.substr(both.find(' '))) == Approx(two[1].at("kl").get<double>()).margin(6e-7));

  // Without a test split, of the validation split.
  SweepOptions options = bench().options("memories-valid", {}, {"one:product_key.layers=[2]"});
  options.config = config;
  const std::vector<RunResult> results = run_all(options);
  REQUIRE(results.at(0).memories.size() == 1);
  CHECK(results[0].memories[0].layer == 2);
  CHECK(results[0].memories[0].kl ==
        Approx(memories_of(bench() / "memories-valid/one", "valid")[0].at("kl").get<double>()).margin(1e-9));
  const std::vector<SweepRun> planned = prepared(options);
  const nlohmann::json object = json_of(options, planned, results, {});
  CHECK(object.at("token_kind") == "char");
  const nlohmann::json& run = object.at("variants").at(0).at("runs").at(0);
  CHECK(run.at("table_optimizer") == "adam row_step 0.01");
  CHECK(run.at("memories").at(0).at("usage") == results[0].memories[0].usage);
  CHECK_THAT(table_of(options, collect_variants(options, planned, results)), ContainsSubstring("validation split"));
}

}  // namespace engram::harness::sweep_product_key_test
