/// Sweeps of tiny models: what is trained and measured, interruption and continuation, runs that fail.

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "apps/studies/sweeps/sweep_report.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/studies/sweeps/sweep_fixture.hpp"
#include "tests/harness/catch.hpp"

/// One test asks for more memory than any machine has. AddressSanitizer's allocator then ends the program, where others
/// say no.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace engram::harness::sweep_test {
namespace {

namespace fs = std::filesystem;

using Csv = std::vector<std::map<std::string, std::string>>;
/// Fields of these files have no quotes.
Csv read_csv(const fs::path& path) {
  const auto split = [](const std::string& line) {
    std::vector<std::string> fields;
    std::istringstream rest(line + ",");
    for (std::string field; std::getline(rest, field, ',');) fields.push_back(field);
    return fields;
  };
  std::istringstream lines(get_file(path));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = split(line);
  Csv rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = split(line);
    REQUIRE(fields.size() == names.size());
    rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) rows.back()[names[i]] = fields[i];
  }
  return rows;
}

double evaluated(const fs::path& run, const Arguments& more) {
  Arguments arguments{"evaluate", run.string(), "--data", bench().data().string(), "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const ProcessResult result = run_engram(arguments);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out).at("bpc");
}

/// Without what is timed anew.
Csv without_reading(Csv table) {
  for (auto& row : table) {
    row.erase("inference_tokens_per_second");
    row.erase("inference_words_per_second");
  }
  return table;
}

/// Of metrics.jsonl.
int events(const fs::path& run, const std::string& event) {
  std::istringstream lines(get_file(run / "metrics.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line);) count += nlohmann::json::parse(line).at("event") == event ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("sweep: two variants with two seeds, as a user runs them", "[night]") {
  const Arguments command =
      bench().command("grid", {"--vary", "model.slots=3,7", "--seeds", "4,5", "--test", "--set", "schedule.steps=150"});
  const ProcessResult result = run_engram(command);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("slots-3") && ContainsSubstring("slots-7") &&
                             ContainsSubstring(", the best") && ContainsSubstring("range"));
  CHECK_THAT(result.out, ContainsSubstring("mean and range over 2 seeds"));

  const fs::path out = bench() / "grid";
  const Csv runs = read_csv(out / "runs.csv"), variants = read_csv(out / "sweep.csv");
  REQUIRE(runs.size() == 4);
  REQUIRE(variants.size() == 2);
  CHECK(runs[1].at("folder") == "slots-3-seed-5");
  CHECK(runs[1].at("seed") == "5");
  int best_before_the_end = 0;
  for (const auto& run : runs) {
    INFO(run.at("folder"));
    const fs::path folder = out / run.at("folder");
    CHECK(run.at("outcome") == "done");
    CHECK(run.at("steps") == "150");
    CHECK(run.at("tokens") == std::to_string(150 * 4 * 40));
    if (run.at("best_step") != "150") ++best_before_the_end;
    // The figures of `engram evaluate`, to all digits that are written.
    CHECK(std::stod(run.at("valid_bpc")) == Approx(evaluated(folder, {})).margin(6e-7).epsilon(0));
    CHECK(std::stod(run.at("best_valid_bpc")) == Approx(evaluated(folder, {"--best"})).margin(6e-7).epsilon(0));
    CHECK(std::stod(run.at("test_bpc")) == Approx(evaluated(folder, {"--split", "test"})).margin(6e-7).epsilon(0));
    CHECK(std::stod(run.at("best_test_bpc")) ==
          Approx(evaluated(folder, {"--split", "test", "--best"})).margin(6e-7).epsilon(0));
    CHECK(std::stod(run.at("tokens_per_second")) > 0);
    CHECK(std::stod(run.at("inference_tokens_per_second")) > 0);
    CHECK(std::stod(run.at("mean_span_positions")) >= 8);
  }
  // Otherwise the two measurements would not be told apart.
  CHECK(best_before_the_end > 0);
  CHECK(runs[0].at("valid_bpc") != runs[1].at("valid_bpc"));
  // A slot more is a key and a value of 16 numbers in each of two layers.
  CHECK(std::stoll(runs[2].at("parameters")) - std::stoll(runs[0].at("parameters")) == 4 * 2 * 16 * 2);

  // One figure for all runs of a variant, and the table's.
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(runs[i].at("inference_tokens_per_second") == variants[i / 2].at("inference_tokens_per_second"));
  CHECK_THAT(result.out, ContainsSubstring("read/s"));

  int best = 0;
  for (std::size_t variant = 0; variant < 2; ++variant) {
    const double first = std::stod(runs[2 * variant].at("best_valid_bpc"));
    const double second = std::stod(runs[2 * variant + 1].at("best_valid_bpc"));
    const auto& row = variants[variant];
    CHECK(row.at("state") == "done");
    CHECK(row.at("overrides") == (variant == 0 ? "model.slots=3" : "model.slots=7"));
    CHECK(std::stod(row.at("best_valid_bpc")) == Approx((first + second) / 2).margin(2e-6));
    CHECK(std::stod(row.at("best_valid_bpc_least")) == std::min(first, second));
    CHECK(std::stod(row.at("best_valid_bpc_most")) == std::max(first, second));
    best += std::stoi(row.at("best"));
  }
  CHECK(best == 1);
  const bool first_wins = std::stod(variants[0].at("best_valid_bpc")) < std::stod(variants[1].at("best_valid_bpc"));
  CHECK(variants[first_wins ? 0 : 1].at("best") == "1");

  // The same again trains nothing and says the same, but for how fast models read.
  const std::string before = checkpoint(out / "slots-7-seed-4"),
                    metrics = get_file(out / "slots-7-seed-4/metrics.jsonl");
  const ProcessResult again = run_engram(command);
  CHECK(again.exit_code == 0);
  CHECK(without_reading(read_csv(out / "runs.csv")) == without_reading(runs));
  CHECK(without_reading(read_csv(out / "sweep.csv")) == without_reading(variants));
  CHECK_THAT(again.err, ContainsSubstring("slots-7-seed-4, trained already"));
  CHECK(checkpoint(out / "slots-7-seed-4") == before);
  CHECK(get_file(out / "slots-7-seed-4/metrics.jsonl") == metrics);

  Arguments as_json = command;
  as_json.push_back("--json");
  const ProcessResult printed = run_engram(as_json);
  REQUIRE(printed.out.find('\n') == printed.out.size() - 1);
  const nlohmann::json object = nlohmann::json::parse(printed.out);
  CHECK(object.at("variants").size() == 2);
  CHECK(object.at("variants").at(1).at("runs").at(0).at("name") == "slots-7-seed-4");
  CHECK(object.at("variants").at(0).at("valid_bpc").at("mean").get<double>() ==
        Approx(std::stod(variants[0].at("valid_bpc"))).margin(1e-6));
}

TEST_CASE("sweep: a run is the one that engram train makes", "[night]") {
  const SweepOptions options = bench().options("alone", {}, {"wide:model.width=24,model.heads=3"});
  const std::vector<RunResult> results = run_all(options);
  REQUIRE(results.size() == 1);
  CHECK(results[0].outcome == RunOutcome::done);
  TrainingRunOptions training;
  training.config = bench().config();
  training.overrides = {"model.width=24", "model.heads=3"};
  training.data = bench().data();
  training.out = bench() / "trained";
  training.threads = 1;
  run_training(training, never());
  CHECK(checkpoint(bench() / "alone/wide") == checkpoint(training.out));
}

TEST_CASE("sweep: an interrupted one goes on where it stopped", "[night]") {
  const std::vector<std::string> vary{"model.slots=3,7"};
  const std::vector<RunResult> whole = run_all(bench().options("whole", vary));
  // Stops are asked for once a step: in the first run, in the second, and between training and measuring.
  for (const int steps : {5, 27, 31}) {
    INFO("stopped after " << steps);
    const std::string out = text("stopped-", steps);
    const SweepOptions options = bench().options(out, vary);
    const std::string message = message_of<Interrupted>([&] { run_all(options, after_steps(steps)); });
    CHECK_THAT(message, ContainsSubstring("slots-") && ContainsSubstring("the same sweep again") &&
                            !ContainsSubstring("--resume"));
    const std::vector<SweepRun> runs = prepared(options);
    CHECK(runs[1].state.kind != RunState::Kind::finished);
    const std::string first = steps > 24 ? checkpoint(runs[0].folder) : "";
    if (steps > 24)
      CHECK(runs[0].state.kind == RunState::Kind::finished);
    else
      CHECK(runs[0].state.step == 5);

    const std::vector<RunResult> results = run_all(options);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK(results[i].outcome == RunOutcome::done);
      CHECK(results[i].valid == whole[i].valid);
      CHECK(results[i].best_valid == whole[i].best_valid);
      CHECK(results[i].best_step == whole[i].best_step);
      CHECK(checkpoint(runs[i].folder) == checkpoint(bench() / "whole" / runs[i].name));
    }
    if (steps > 24) CHECK(checkpoint(runs[0].folder) == first);
    CHECK(events(runs[0].folder, "resume") == (steps < 24 ? 1 : 0));
  }
}

TEST_CASE("sweep: killed or told to stop, the program goes on with the same command", "[slow]") {
  const Arguments command = bench().command(
      "killed", {"--vary", "model.slots=3,7", "--set", "schedule.steps=600", "--set", "training.checkpoint_every=20"});
  const fs::path out = bench() / "killed";
  const auto wait_for = [&](Process& process, const fs::path& file) {
    while (!fs::exists(file)) {
      if (!process.running() && !fs::exists(file)) FAIL(process.wait().err);
      ::usleep(200);
    }
  };
  {
    Process process(command);
    wait_for(process, checkpoint_path(out / "slots-3", CheckpointKind::newest));
    process.send(SIGKILL);
    CHECK(process.wait().signal == SIGKILL);
  }
  {
    Process process(command);
    wait_for(process, checkpoint_path(out / "slots-7", CheckpointKind::newest));
    process.send(SIGINT);
    const ProcessResult stopped = process.wait();
    CHECK(stopped.exit_code == 130);
    CHECK_THAT(stopped.err,
               ContainsSubstring("'slots-7'") && ContainsSubstring("the same sweep again goes on from there"));
    CHECK(stopped.out.empty());
  }
  const Csv between = read_csv(out / "sweep.csv");
  CHECK(between.at(0).at("state") == "done");
  CHECK(between.at(1).at("state") == "waiting");
  CHECK(between.at(1).at("valid_bpc").empty());
  const ProcessResult done = run_engram(command);
  INFO(done.err);
  CHECK(done.exit_code == 0);
  CHECK(events(out / "slots-3", "resume") == 1);
  CHECK(events(out / "slots-7", "resume") == 1);

  Arguments straight = command;
  straight[std::find(straight.begin(), straight.end(), out.string()) - straight.begin()] =
      (bench() / "straight").string();
  REQUIRE(run_engram(straight).exit_code == 0);
  for (const char* name : {"slots-3", "slots-7"})
    CHECK(SafetensorsFile(checkpoint_path(out / name, CheckpointKind::best)).metadata().at("engram.step") ==
          SafetensorsFile(checkpoint_path(bench() / "straight" / name, CheckpointKind::best))
              .metadata()
              .at("engram.step"));
  const Csv left = read_csv(out / "runs.csv"), right = read_csv(bench() / "straight/runs.csv");
  for (std::size_t i = 0; i < 2; ++i) CHECK(left[i].at("valid_bpc") == right[i].at("valid_bpc"));
}

TEST_CASE("sweep: a variant that diverges or has no memory is said so and stops no other", "[night]") {
  const SweepOptions options =
      bench().options("diverging", {},
                      {"tame", "wild:schedule.rate=1e30,schedule.warmup=0",
                       "huge:model.slots=2147483647,model.width=16777216", "last:model.slots=2"});
  const std::vector<RunResult> results = run_all(options);
  REQUIRE(results.size() == 4);
  CHECK(results[0].outcome == RunOutcome::done);
  CHECK(results[1].outcome == RunOutcome::diverged);
  CHECK(results[2].outcome == RunOutcome::out_of_memory);
  CHECK(results[3].outcome == RunOutcome::done);
  CHECK_FALSE(results[1].valid);
  CHECK(results[1].step < 24);
  CHECK_FALSE(results[1].reason.empty());

  const Csv table = read_csv(bench() / "diverging/sweep.csv");
  CHECK_THAT(table[1].at("state"), StartsWith("diverged after step "));
  CHECK(table[1].at("valid_bpc").empty());
  CHECK(table[1].at("best") == "0");
  CHECK(table[2].at("state") == "out of memory after step 0");
  CHECK_THAT(table_of(options, collect_variants(options, prepared(options), results)),
             ContainsSubstring("diverged after step ") && ContainsSubstring(" -  "));

  // It is not tried again.
  const std::vector<SweepRun> runs = prepared(options);
  CHECK(runs[1].state.kind == RunState::Kind::diverged);
  CHECK(runs[2].state.kind == RunState::Kind::fresh);
  const std::string metrics = get_file(runs[1].folder / "metrics.jsonl");
  CHECK(run_all(options)[1].outcome == RunOutcome::diverged);
  CHECK(get_file(runs[1].folder / "metrics.jsonl") == metrics);
}

TEST_CASE("sweep: outcomes of several seeds in one line") {
  SweepOptions options = bench().options("spread", {}, {"a", "b"}, {1, 2, 3});
  std::vector<SweepRun> runs = prepared(options);
  std::vector<RunResult> results(6);
  for (std::size_t i = 0; i < 6; ++i) {
    results[i].outcome = RunOutcome::done;
    results[i].step = 24;
    results[i].valid = results[i].best_valid = 2.0 + static_cast<double>(i) / 8;
  }
  results[1].outcome = RunOutcome::diverged;
  results[1].step = 9;
  results[1].valid = std::nullopt;
  const std::vector<VariantResult> variants = collect_variants(options, runs, results);
  CHECK(variants[0].state == "2 done, 1 diverged after step 9");
  CHECK(variants[0].steps == 9);
  CHECK(variants[0].tokens == 9 * 160);
  CHECK(variants[0].valid->mean == Approx(2.125));
  CHECK(variants[0].valid->least == 2);
  CHECK(variants[0].valid->most == 2.25);
  // Lower, but not all of its runs are done.
  CHECK_FALSE(variants[0].best);
  CHECK(variants[1].best);
  CHECK(variants[1].state == "done");
  CHECK(variants[1].valid->mean == Approx(2.5));
  const std::string csv = csv_of(options, variants);
  CHECK_THAT(csv, ContainsSubstring("valid_bpc,valid_bpc_least,valid_bpc_most") &&
                      ContainsSubstring(",2.125000,2.000000,2.250000,") &&
                      ContainsSubstring("\"2 done, 1 diverged after step 9\",0\n"));
}

}  // namespace engram::harness::sweep_test
