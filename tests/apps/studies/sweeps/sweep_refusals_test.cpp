/// What a sweep says before it trains: refusals, warnings, and the list of --dry-run.

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/studies/sweeps/sweep_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::sweep_refusals_test {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("sweep: every config is checked before the first is trained", "[night]") {
  const auto refused = [](const Arguments& more, const std::vector<std::string>& parts) {
    const ProcessResult result = run_engram(bench().command("refused", more));
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    for (const std::string& part : parts) CHECK_THAT(result.err, ContainsSubstring(part));
    CHECK_FALSE(fs::exists(bench() / "refused"));
  };
  refused({"--vary", "model.slots=3,many"}, {"variant 'slots-many'", "model.slots=many", "must be an integer"});
  refused({"--vary", "model.slotss=3,4"}, {"variant 'slotss-3'", "model.slotss", "model.slots"});
  refused({"--vary", "model.heads=2,3"}, {"variant 'heads-3'", "model.heads=3", "width 16"});
  refused({"--vary", "model.slots=4", "--variant", "two:model.slots=4,model.width=9"},
          {"variant 'two'", "model.width=9"});
  refused({"--vary", "model.vocabulary=0,99"}, {"variant 'vocabulary-99'", "99"});
  refused({"--vary", "training.block=40,126"}, {"variant 'block-126'", "--exact"});
  refused({"--vary", "training.batch=4,1000"}, {"variant 'batch-1000'", "training.batch=1000"});
  refused({"--vary", "training.seed=1,2", "--seeds", "3"}, {"--seeds", "'seed-1'"});
  refused({"--seeds", "1,x"}, {"--seeds", "1,x"});
  refused({"--vary", "model.slots=4", "--name", "a,b"}, {"--name", "1 variants"});
  refused({"--vary", "model.slots"}, {"--vary", "section.key=value"});
  refused({"--vary", "model.slots=4", "--dtype", "i32"}, {"--dtype", "i32"});
}

TEST_CASE("sweep: runs of an earlier sweep that the tables will be without are told of") {
  SweepOptions options = bench().options("earlier", {"model.slots=3,4"});
  fs::create_directories(options.out);
  put_file(options.out / "runs.csv", "variant,folder\nslots-3,slots-3\nslots-8,slots-8\n\"a,b\",old\n");
  const std::vector<std::string> warnings = sweep_warnings(options, prepared(options));
  REQUIRE(warnings.size() == 1);
  CHECK_THAT(warnings[0], ContainsSubstring("will be without slots-8, old, which an earlier sweep trained there"));
  put_file(options.out / "runs.csv", "variant,folder\nslots-3,slots-3\n");
  CHECK(sweep_warnings(options, prepared(options)).empty());
  options.out = "";
  CHECK_THAT(message_of<UsageError>([&] { prepared(options); }), ContainsSubstring("must name the sweep's folder"));
}

TEST_CASE("sweep: a folder of another config or other data is refused by name") {
  SweepOptions options = bench().options("taken", {"model.slots=3"});
  run_all(options);
  const std::string before = checkpoint(bench() / "taken/slots-3");
  options.overrides = {"schedule.rate=0.05"};
  CHECK_THAT(message_of<UsageError>([&] { prepared(options); }),
             ContainsSubstring("taken/slots-3") && ContainsSubstring("schedule.rate: 0.07 -> 0.05"));
  options.overrides = {};
  CHECK(prepared(options)[0].state.kind == RunState::Kind::finished);
  options.dtype = DType::f64;
  CHECK_THAT(message_of<UsageError>([&] { prepared(options); }),
             ContainsSubstring("taken/slots-3") && ContainsSubstring("f32, not f64"));
  options.dtype = DType::f32;

  const RunFolder other(20000, 2);
  options.data = other.data();
  CHECK_THAT(message_of<UsageError>([&] { prepared(options); }),
             ContainsSubstring("taken/slots-3") && ContainsSubstring("other data"));
  options.data = bench().data();

  fs::create_directories(bench() / "taken/slots-9");
  put_file(bench() / "taken/slots-9/notes.txt", "mine");
  CHECK_THAT(message_of<UsageError>([&] { prepared(bench().options("taken", {"model.slots=3,9"})); }),
             ContainsSubstring("taken/slots-9") && ContainsSubstring("config.toml"));
  CHECK(checkpoint(bench() / "taken/slots-3") == before);
}

TEST_CASE("sweep: a folder whose run was killed before it had a configuration is begun anew") {
  const SweepOptions options = bench().options("not-begun", {"model.slots=3"});
  const fs::path folder = options.out / "slots-3";
  fs::create_directories(folder);
  CHECK(prepared(options)[0].state.kind == RunState::Kind::fresh);
  put_file(folder / "lock", "");
  put_file(folder / "config.toml.partial", "[mod");
  CHECK(prepared(options)[0].state.kind == RunState::Kind::fresh);
  run_all(options);
  CHECK(prepared(options)[0].state.kind == RunState::Kind::finished);
  CHECK_FALSE(fs::exists(folder / "config.toml.partial"));
}

TEST_CASE("sweep: --dry-run lists the runs and trains nothing", "[night]") {
  const ProcessResult result = run_engram(
      bench().command("dry", {"--vary", "training.block=40,20", "--variant", "more:model.slots=50", "--dry-run"}));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_FALSE(fs::exists(bench() / "dry"));
  CHECK_THAT(result.out, ContainsSubstring("block-40") && ContainsSubstring("block-20") && ContainsSubstring("more") &&
                             ContainsSubstring("new"));
  CHECK_THAT(result.out, ContainsSubstring(" 3840  new") && ContainsSubstring(" 1920  new"));
  // Differing tokens are said with their numbers.
  CHECK_THAT(result.err, ContainsSubstring("warning") && ContainsSubstring("same number of tokens") &&
                             ContainsSubstring("block-40: 3840 tokens, 24 steps of 4 x 40") &&
                             ContainsSubstring("block-20: 1920 tokens, 24 steps of 4 x 20"));

  const ProcessResult listed =
      run_engram(bench().command("dry", {"--vary", "schedule.rate=0.1,0.2", "--seeds", "1,2", "--dry-run", "--json"}));
  CHECK_THAT(listed.err, !ContainsSubstring("same number of tokens"));
  const nlohmann::json object = nlohmann::json::parse(listed.out);
  REQUIRE(object.at("runs").size() == 4);
  CHECK(object.at("runs").at(3).at("name") == "rate-0.2-seed-2");
  CHECK(object.at("runs").at(0).at("tokens") == 3840);
  const std::int64_t vocabulary = data::DataSet::open(bench().data()).vocabulary().size();
  const ProcessResult same =
      run_engram({"count", "--config", bench().config().string(), "--vocab", std::to_string(vocabulary), "--json"});
  CHECK(object.at("runs").at(0).at("parameters") == nlohmann::json::parse(same.out).at("parameters"));
}

}  // namespace engram::harness::sweep_refusals_test
