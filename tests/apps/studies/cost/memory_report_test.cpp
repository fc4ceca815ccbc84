#include "apps/studies/cost/memory_report.hpp"

#include <string>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::memory_report_test {
namespace {

FitReport fitted(std::int64_t room, std::int64_t unit, std::int64_t most) {
  FitReport report{.key = "training.batch", .room = room};
  find_fit(report, unit, [&](std::int64_t value) {
    CHECK(value % unit == 0);
    if (value > most) throw UsageError(text("training.batch must be at most ", most, ", got ", value, "\n  advice"));
    return 100 + 7 * value;
  });
  return report;
}

TEST_CASE("memory: the largest value that fits is found", "[memory]") {
  for (const std::int64_t unit : {1, 3, 8})
    for (std::int64_t room = 100 + 7 * unit; room < 2000; room += 13) {
      CAPTURE(unit, room);
      const FitReport report = fitted(room, unit, 1'000'000);
      CHECK(report.value == (room - 100) / 7 / unit * unit);
      CHECK(report.bytes == 100 + 7 * report.value);
      CHECK(report.next == report.value + unit);
      CHECK(report.next_bytes > room);
      CHECK(report.refused.empty());
    }
  const FitReport none = fitted(100, 1, 10);
  CHECK(none.value == 0);
  CHECK(none.bytes == 107);
  const FitReport bounded = fitted(10'000, 1, 45);
  CHECK(bounded.value == 45);
  CHECK(bounded.refused == "training.batch must be at most 45, got 46");
  CHECK_THROWS_AS(fitted(1000, 1, 0), UsageError);
}

TEST_CASE("memory: amounts", "[memory]") {
  CHECK(parse_bytes("1") == 1);
  CHECK(parse_bytes("24GiB") == std::int64_t{24} << 30);
  CHECK(parse_bytes("1.5kB") == 1500);
  CHECK(parse_bytes("80GB") == 80'000'000'000);
  for (const char* wrong : {"", "GiB", "0", "-1", "1 GiB", "1gib", "nan", "inf", "1e30", "0x10"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(parse_bytes(wrong), UsageError);
  }
}

TEST_CASE("memory: engram count says what fits", "[memory][command]") {
  const std::string config = text(ENGRAM_SOURCE_DIR, "/apps/configs/bench/bench-small.toml");
  const auto counted = [&](Arguments more) {
    more.insert(more.begin(), {"count", "--config", config, "--vocab", "50", "--threads", "1", "--json"});
    return json_of(more).at("memory");
  };
  const nlohmann::json memory = counted({"--memory", "--batch", "6"});
  CHECK(memory["batch"] == 6);
  CHECK(memory["bytes"].get<std::int64_t>() ==
        memory["kept"]["bytes"].get<std::int64_t>() + memory["step"]["arena"].get<std::int64_t>());
  const nlohmann::json fit = counted({"--fit-memory", memory["bytes"].dump()})["fit"];
  CHECK(fit["value"] >= 6);
  CHECK(fit["bytes"] <= memory["bytes"]);
  CHECK(fit["next_bytes"] > memory["bytes"]);
  const ProcessResult refused = run_engram({"count", "--config", config, "--vocab", "50", "--fit-memory", "much"});
  CHECK(refused.exit_code > 0);
  CHECK(refused.err.find("'much'") != std::string::npos);
}

}  // namespace
}  // namespace engram::harness::memory_report_test
