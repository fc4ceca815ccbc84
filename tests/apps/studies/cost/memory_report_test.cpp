#include "apps/studies/cost/memory_report.hpp"

#include <string>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::memory_report_test {
namespace {

FitReport fitted(std::int64_t room, std::int64_t unit, std::int64_t most) {
  FitReport report{.keys = {"training.batch"}, .room = room};
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

TEST_CASE("memory: values between which there are others that cannot be", "[memory]") {
  const auto fitted_of = [](std::int64_t room, auto allowed) {
    FitReport report{.keys = {"model.width"}, .room = room};
    find_fit(report, 1, [&](std::int64_t value) {
      if (!allowed(value)) throw UsageError(text("model.width must be another, got ", value));
      return 10 * value;
    });
    return report;
  };
  const auto by_twelve = [](std::int64_t value) { return value % 12 == 0; };
  for (std::int64_t room = 120; room < 20'000; room += 77) {
    CAPTURE(room);
    const FitReport report = fitted_of(room, by_twelve);
    CHECK(report.value == room / 120 * 12);
    CHECK(report.next == report.value + 12);
    CHECK(report.refused.empty());
  }
  const FitReport none = fitted_of(100, by_twelve);
  CHECK(none.value == 0);
  CHECK(none.smallest == 12);
  CHECK(none.bytes == 120);
  const auto doubled = [](std::int64_t value) { return (value & (value - 1)) == 0; };
  CHECK(fitted_of(5000, doubled).value == 256);
  CHECK(fitted_of(5000, doubled).next == 512);
  CHECK_THROWS_AS(fitted_of(5000, [](std::int64_t) { return false; }), UsageError);
}

TEST_CASE("memory: batches that fit are such as ranks can share, whatever the split", "[memory][command]") {
  const std::string config = text(ENGRAM_SOURCE_DIR, "/apps/configs/bench/bench-small.toml");
  const nlohmann::json memory = json_of({"count", "--config", config, "--vocab", "50", "--threads", "1", "--json",
                                         "--ranks", "2", "--split", "6", "--batch", "24", "--fit-memory", "300MiB"})
                                    .at("memory");
  // Six pieces, of which two ranks make four each.
  CHECK(memory["split"] == 8);
  CHECK(memory["fit"]["value"].get<std::int64_t>() > 0);
  CHECK(memory["fit"]["value"].get<std::int64_t>() % 24 == 0);
  CHECK(memory["fit"]["next"].get<std::int64_t>() == memory["fit"]["value"].get<std::int64_t>() + 24);
}

TEST_CASE("memory: keys that have one value are raised together", "[memory][command]") {
  const std::string config = text(ENGRAM_SOURCE_DIR, "/apps/configs/bench/bench-xl.toml");
  const auto counted = [&](Arguments more) {
    more.insert(more.begin(), {"count", "--config", config, "--threads", "1", "--json", "--set", "model.memory=0"});
    return json_of(more).at("memory");
  };
  const nlohmann::json half = counted({"--memory", "--set", "training.block=20", "training.extension=20"});
  const nlohmann::json fit =
      counted({"--fit-memory", half["bytes"].dump(), "--fit-key", "training.block,training.extension"})["fit"];
  CHECK(fit["key"] == "training.block,training.extension");
  CHECK(fit["value"] >= 20);
  CHECK(fit["bytes"] <= half["bytes"]);
  const std::int64_t more = fit["value"].get<std::int64_t>() + 1;
  CHECK(counted({"--memory", "--set", text("training.block=", more), text("training.extension=", more)})["bytes"] >
        half["bytes"]);
}

TEST_CASE("count: tables that are frozen have no state", "[count][command]") {
  const std::string config = text(ENGRAM_SOURCE_DIR, "/apps/configs/bench/bench-product-key.toml");
  const auto counted = [&](const char* setting) {
    return json_of({"count", "--config", config, "--json", "--set", "product_key.layers=3,5", "--set", setting});
  };
  const nlohmann::json whole = counted("training.freeze=[]");
  const nlohmann::json frozen = counted("training.freeze=layers.2.*");
  const auto state = [](const nlohmann::json& report) {
    return report.at("tables").at("optimizer_state_bytes").get<std::int64_t>();
  };
  CHECK(frozen.at("tables").at("frozen_tables") == 1);
  CHECK(state(frozen) * 2 == state(whole));
  CHECK(whole.at("training_state_bytes").get<std::int64_t>() - frozen.at("training_state_bytes").get<std::int64_t>() >
        state(frozen));
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
