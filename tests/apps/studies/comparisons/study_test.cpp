/// A study of tiny models from its file to its verdicts, as a user runs it; what a study file may say.

#include "apps/studies/comparisons/study.hpp"

#include <cmath>
#include <filesystem>
#include <sstream>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/studies/comparisons/study_report.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/studies/sweeps/sweep_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::study_test {
namespace {

namespace fs = std::filesystem;

/// Two variants of the fixture's model; `more` stands in [study].
std::string study_text(const std::string& config, const std::string& more = "") {
  return R"([study]
title = "More slots against fewer"
config = ")" +
         config + R"("
equal = ["tokens"]
rates = [0.1, 1]
trial_share = 0.5
seeds = [1, 2]
block = 50
)" + more +
         R"([variants]
few = "model.slots=3"
many = "model.slots=7,schedule.rate=0.05"
[claims]
"more slots help" = "many < few"
"they are much alike" = "many ~50% few"
)";
}

std::string refusal(const std::string& written) {
  return message_of<UsageError>([&] { parse_study(written, "the test"); });
}

struct StudyBench : SweepBench {
  StudyBench() { put_file(*this / "slots.study", study_text(config().string())); }
  Arguments command(std::string_view out, const Arguments& more = {}) const {
    Arguments arguments{"study", (*this / "slots.study").string(), "--data",    data().string(),
                        "--out", (*this / out).string(),           "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
};

}  // namespace

TEST_CASE("study: from a file to verdicts, interrupted and gone on with", "[night]") {
  const StudyBench bench;
  const StudyPlan plan = read_study(bench / "slots.study");
  const data::DataSet data = data::DataSet::open(bench.data());
  const StudyOptions options{.data = bench.data(), .out = bench / "out", .budget = 1, .threads = 1};
  // In the third of the four trials, which have 12 steps.
  CHECK_THAT(message_of<Interrupted>([&] { run_study(plan, options, data, after_steps(30)); }),
             ContainsSubstring("many-rate-0.1-seed-101") && ContainsSubstring("the same study again goes on"));

  const ProcessResult result = run_engram(bench.command("out", {"--json"}));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json report = nlohmann::json::parse(result.out);
  REQUIRE(report.at("variants").size() == 2);
  const auto& few = report["variants"][0];
  const auto& many = report["variants"][1];
  CHECK(many["parameters"].get<int>() - few["parameters"].get<int>() == 4 * 2 * 16 * 2);
  CHECK(few["steps"] == 24);
  CHECK(few["tokens"] == 24 * 160);
  // Of 24 steps every one counts: a tenth of the rate learns less.
  CHECK(few["chosen_rate"] == 0.07);
  CHECK(many["chosen_rate"] == 0.05);
  CHECK(few["rate_at_end"] == true);
  CHECK(few["trials"][0]["nats"].get<double>() > few["trials"][1]["nats"].get<double>());
  REQUIRE(few["runs"].size() == 2);

  // The figure of `engram evaluate`, and the difference of the means is that of the losses, but for the few tokens
  // behind the last block.
  const ProcessResult evaluated = run_engram({"evaluate", (bench / "out/runs/few-seed-2").string(), "--data",
                                              bench.data().string(), "--split", "test", "--json"});
  CHECK(few["runs"][1]["nats"].get<double>() ==
        Approx(nlohmann::json::parse(evaluated.out).at("nll").get<double>()).epsilon(1e-9));
  const auto mean = [](const nlohmann::json& variant) {
    return (variant["runs"][0]["nats"].get<double>() + variant["runs"][1]["nats"].get<double>()) / 2;
  };
  const auto& difference = report["comparisons"][0];
  CHECK(difference["left"] == "many");
  CHECK(difference["difference"].get<double>() == Approx(mean(many) - mean(few)).margin(0.02));
  CHECK(difference["low"].get<double>() < difference["difference"].get<double>());
  CHECK(difference["blocks"].get<int>() >= 15);
  CHECK(report["comparisons"][1]["verdict"] == "seen");
  CHECK(fs::exists(bench / "out/study.svg"));
  CHECK_THAT(get_file(bench / "out/study.csv"), ContainsSubstring("more slots help,many,few,"));

  // Nothing is trained or read again, and the same is said; what was measured of other weights is measured anew.
  const fs::path kept = bench / "out/losses/runs-few-seed-2.json",
                 metrics = bench / "out/runs/few-seed-2/metrics.jsonl";
  const auto measured = fs::last_write_time(kept), trained = fs::last_write_time(metrics);
  CHECK(run_engram(bench.command("out", {"--json"})).out == result.out);
  CHECK(fs::last_write_time(kept) == measured);
  CHECK(fs::last_write_time(metrics) == trained);
  put_file(kept, get_file(bench / "out/losses/runs-few-seed-1.json"));
  const ProcessResult again = run_engram(bench.command("out"));
  CHECK_THAT(again.out, ContainsSubstring("More slots against fewer") && ContainsSubstring("equal: tokens") &&
                            ContainsSubstring("note: the best rate of few is at the end"));
  CHECK(nlohmann::json::parse(get_file(bench / "out/study.json")) == report);
}

TEST_CASE("study: a rate that diverges is said so and not taken, and the study goes on", "[night]") {
  const StudyBench bench;
  const fs::path file = bench / "wild.study";
  std::string wild = study_text(bench.config().string());
  // The loss of the second step is not finite.
  wild.replace(wild.find("[0.1, 1]"), 8, "[0.1, 1e30]");
  put_file(file, wild);
  const Arguments command{"study",  file.string(), "--data", bench.data().string(), "--out", (bench / "wild").string(),
                          "--json", "--threads",   "1"};
  const ProcessResult result = run_engram(command);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.err, ContainsSubstring("study: few-rate-1e+30-seed-101 diverged: training: "));
  const nlohmann::json report = nlohmann::json::parse(result.out);
  for (const auto& variant : report.at("variants")) {
    CHECK(variant["trials"][0]["nats"].is_number());
    CHECK(variant["trials"][1]["nats"].is_null());
    CHECK_THAT(variant["trials"][1]["reason"].get<std::string>(),
               StartsWith("diverged: training: ") && !ContainsSubstring("\n"));
    CHECK(variant["chosen_rate"].get<double>() == Approx(variant["rate"].get<double>() * 0.1));
    CHECK(variant["runs"][1]["nats"].is_number());
  }
  CHECK(report["comparisons"][0]["verdict"] != "cannot be told");

  // It is not tried again, and the same is said.
  const std::string log = get_file(bench / "wild/trials/few-rate-1e+30-seed-101/metrics.jsonl");
  CHECK(run_engram(command).out == result.out);
  CHECK(get_file(bench / "wild/trials/few-rate-1e+30-seed-101/metrics.jsonl") == log);
  const Arguments for_people{command.begin(), command.begin() + 6};
  CHECK_THAT(run_engram(for_people).out, ContainsSubstring("note: few-rate-1e+30-seed-101 diverged: training: "));
}

TEST_CASE("study: where every rate of a variant diverges", "[night]") {
  const StudyBench bench;
  const fs::path file = bench / "lost.study";
  const std::string good = study_text(bench.config().string(), "");
  const auto study = [&](const std::string& rates, const std::string& more_variants, const std::string& more_claims) {
    std::string written = good;
    written.replace(written.find("[0.1, 1]"), 8, rates);
    written.replace(written.find("[claims]"), 8, more_variants + "[claims]\n" + more_claims);
    put_file(file, written);
    return run_engram({"study", file.string(), "--data", bench.data().string(), "--out", (bench / "lost").string(),
                       "--threads", "1"});
  };
  // Of all: one error, before anything else is trained. Lower rates go on from there.
  const ProcessResult none = study("[1e29, 1e30]", "", "");
  CHECK(none.exit_code == 1);
  CHECK(none.out.empty());
  CHECK_THAT(none.err,
             ContainsSubstring("error: study: two variants of a claim must have a rate whose trial has a loss, "
                               "got none:\n  few-rate-1e+29-seed-101 diverged: ") &&
                 ContainsSubstring("\n  many-rate-1e+30-seed-101 diverged: ") &&
                 ContainsSubstring("lower rates of [study]"));
  CHECK_FALSE(fs::exists(bench / "lost/runs"));
  CHECK_FALSE(fs::exists(bench / "lost/study.csv"));

  // Of one variant: what is said of the others can be told.
  const ProcessResult one = study("[1]", "wild = \"schedule.rate=1e30\"\n", "\"wild\" = \"wild < few\"\n");
  INFO(one.err);
  REQUIRE(one.exit_code == 0);
  CHECK_THAT(one.err, ContainsSubstring("no trial of wild has a loss: claims about it cannot be told"));
  CHECK_THAT(one.out, ContainsSubstring("cannot be told      wild < few\n      no trial of wild has a loss\n"));
  const nlohmann::json report = nlohmann::json::parse(get_file(bench / "lost/study.json"));
  CHECK(report["comparisons"][0]["verdict"] == "cannot be told");
  CHECK(report["comparisons"][1]["difference"].is_number());
  CHECK(report["variants"][2]["runs"].empty());
}

TEST_CASE("study: what it would train, and budgets that are not equal") {
  const StudyBench bench;
  const ProcessResult result = run_engram(bench.command("none", {"--dry-run", "--budget", "0.5"}));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("few") && ContainsSubstring("minutes"));
  CHECK_FALSE(fs::exists(bench / "none"));
  CHECK_THAT(run_engram(bench.command("none", {"--budget", "0.01"})).err,
             ContainsSubstring("two steps or more, got 0"));

  StudyPlan plan = read_study(bench / "slots.study");
  const data::DataSet data = data::DataSet::open(bench.data());
  const StudyOptions options{.data = bench.data(), .out = bench / "none", .budget = 1, .threads = 1};
  plan.block = 100000;
  CHECK_THAT(message_of<UsageError>([&] { study_variants(plan, options, data); }),
             ContainsSubstring("two of them or more, got a block of 100000 tokens and a split of "));
  plan.block = 50;
  plan.equal = {Budget::parameters, Budget::tokens};
  CHECK_THAT(message_of<UsageError>([&] { study_variants(plan, options, data); }),
             ContainsSubstring("the same number of parameters within 2%"));
  plan.equal = {Budget::arithmetic};
  plan.variants[1].overrides = {"model.layers=4"};
  const std::vector<StudyVariant> equal = study_variants(plan, options, data);
  CHECK(equal[1].steps < equal[0].steps);
  CHECK(static_cast<double>(equal[1].steps) * equal[1].flops ==
        Approx(static_cast<double>(equal[0].steps) * equal[0].flops).epsilon(0.05));
  // Warm-up is a sixth of the steps in the config.
  CHECK(equal[0].warmup == 4);
  CHECK(equal[1].warmup < 4);
  CHECK(static_cast<double>(equal[1].warmup) == Approx(static_cast<double>(equal[1].steps) / 6).margin(0.5));
  plan.equal = {Budget::tokens};
  plan.variants[1].overrides = {"training.batch=8"};
  CHECK_THAT(message_of<UsageError>([&] { study_variants(plan, options, data); }),
             ContainsSubstring("the same number of tokens"));
}

TEST_CASE("study: verdicts by intervals") {
  const auto verdict = [](double low, double high, std::optional<double> alike = {}) {
    PairedDifference difference;
    difference.difference = (low + high) / 2;
    difference.low = low;
    difference.high = high;
    return verdict_of(difference, alike);
  };
  CHECK(verdict(-0.2, -0.1) == StudyVerdict::seen);
  CHECK(verdict(-0.2, 0.1) == StudyVerdict::none_seen);
  CHECK(verdict(0.1, 0.2) == StudyVerdict::opposite);
  CHECK(verdict(-0.015, 0.015, 0.02) == StudyVerdict::seen);
  CHECK(verdict(-0.015, 0.025, 0.02) == StudyVerdict::none_seen);
  CHECK(verdict(0.025, 0.05, 0.02) == StudyVerdict::opposite);
  PairedDifference lower;
  lower.difference = -0.1;
  lower.low = -0.15;
  lower.high = -0.05;
  CHECK(difference_text(lower, data::TokenKind::character, 0.95) ==
        "0.1443 bits per character lower (95%: 0.0721 to 0.2164 lower)");
  CHECK(difference_text(lower, data::TokenKind::word, 0.9) == "9.52% perplexity lower (90%: 4.88 to 13.93 lower)");
}

TEST_CASE("study: its tables fit 80 columns") {
  StudyReport report;
  report.plan = parse_study(study_text("c.toml"), "the test");
  report.plan.rates = {0.25, 0.5, 1, 2};
  report.kind = data::TokenKind::word;
  report.blocks = 1234;
  StudyForecast forecast{.plan = report.plan, .options = {}, .variants = {}, .step_seconds = {}, .held_out_tokens = 9};
  for (const std::string name : {"key-value-predict", "wide-attention-lstm"}) {
    StudyVariantResult of;
    of.variant = {.name = name,
                  .parameters = 12345678,
                  .flops = 123.45e6,
                  .rate = 0.00125,
                  .warmup = 0,
                  .full_steps = 12345,
                  .steps = 12345,
                  .step_tokens = 1024,
                  .checkpoint_every = 9};
    for (const double nats : {5.1, 5.2, 5.3, 5.4}) of.trials.push_back({"trial", "", nats, 1000});
    of.rate = 0.25;
    of.rate_at_end = true;
    of.runs = {{"seed-1", "", 5.1, 1000}, {"seed-2", "", 5.2, 1000}};
    report.variants.push_back(of);
    forecast.variants.push_back(of.variant);
    forecast.step_seconds.push_back(1.5);
  }
  PairedDifference found;
  found.difference = -0.1;
  found.low = -0.75;
  found.high = 0.55;
  report.comparisons.push_back({.claim = "one is better than the other",
                                .left = "key-value-predict",
                                .right = "wide-attention-lstm",
                                .alike = {},
                                .measured = found,
                                .verdict = StudyVerdict::none_seen});
  const std::string table = table_of(report);
  CHECK_THAT(table, ContainsSubstring("x0.25") && ContainsSubstring("would have been seen"));
  std::istringstream lines(table + table_of(forecast));
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= 80);
  }
}

TEST_CASE("study: what a file may say") {
  const StudyPlan plan = parse_study(study_text("c.toml", "trial_seed = 9\nconfidence = 0.9\n"), "the test");
  CHECK(plan.title == "More slots against fewer");
  CHECK(plan.rates == std::vector<double>{0.1, 1});
  CHECK(plan.seeds == std::vector<std::uint64_t>{1, 2});
  CHECK(plan.trial_seed == 9);
  CHECK(plan.confidence == 0.9);
  REQUIRE(plan.variants.size() == 2);
  CHECK(plan.variants[1].overrides == std::vector<std::string>{"model.slots=7", "schedule.rate=0.05"});
  REQUIRE(plan.claims.size() == 2);
  CHECK(plan.claims[0].what == "more slots help");

  CHECK_THAT(refusal(study_text("c.toml", "rats = [1]\n")),
             ContainsSubstring("must be one of block, confidence") && ContainsSubstring("got rats"));
  CHECK_THAT(refusal(study_text("c.toml", "trial_seed = 2\n")), ContainsSubstring("none of seeds, got 2"));
  CHECK_THAT(refusal(study_text("c.toml", "confidence = 1\n")), ContainsSubstring("confidence must be"));
  const std::string good = study_text("c.toml");
  const auto with = [&good](const std::string& old, const std::string& fresh) {
    std::string text = good;
    return text.replace(text.find(old), old.size(), fresh);
  };
  CHECK_THAT(refusal(with("[\"tokens\"]", "[\"tokens\", \"arithmetic\"]")), ContainsSubstring("equal must be"));
  CHECK_THAT(refusal(with("[0.1, 1]", "[1, 0.1]")), ContainsSubstring("ascending order"));
  CHECK_THAT(refusal(with("block = 50", "block = 0")),
             ContainsSubstring("block must be") && ContainsSubstring("got 0"));
  CHECK_THAT(refusal(with("[1, 2]", "[1]")), ContainsSubstring("two whole numbers or more"));
  CHECK_THAT(refusal(with("many < few", "many <= few")), ContainsSubstring("a claim must be 'a < b'"));
  CHECK_THAT(refusal(with("many < few", "many < some")), ContainsSubstring("about its variants, got 'some'"));
  CHECK_THAT(refusal(with("[claims]", "[claim]")), ContainsSubstring("[study], [variants] or [claims], got claim"));
  CHECK_THAT(message_of<FileError>([] { find_study("transformer"); }),
             ContainsSubstring("must be a file or a study that comes with the program"));
}

TEST_CASE("study: those that come with the program are equal in what they say") {
  int studies = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(ENGRAM_SOURCE_DIR) / "apps/configs/studies")) {
    if (entry.path().extension() != ".study") continue;
    ++studies;
    const StudyPlan plan = read_study(entry.path());
    INFO(plan.name);
    std::vector<std::int64_t> parameters, tokens;
    for (const SweepVariant& variant : plan.variants) {
      std::vector<std::string> overrides = variant.overrides;
      // Any vocabulary of the size that the text has; the data decide.
      overrides.push_back(plan.name == "product-keys"        ? "model.vocabulary=8000"
                          : plan.name == "key-value-predict" ? "model.vocabulary=20000"
                                                             : "model.vocabulary=95");
      const RunConfig config =
          load_run_config(fs::path(ENGRAM_SOURCE_DIR) / "apps/configs" / (plan.config.string() + ".toml"), overrides);
      parameters.push_back(count_parameters(*make_model(config.model)).total);
      tokens.push_back(config.total_steps() * config.training.batch * config.training.block);
    }
    if (plan.equal_in(Budget::parameters))
      CHECK(static_cast<double>(std::ranges::max(parameters)) <=
            (1 + plan.tolerance) * static_cast<double>(std::ranges::min(parameters)));
    if (plan.equal_in(Budget::tokens)) CHECK(std::ranges::max(tokens) == std::ranges::min(tokens));
    CHECK(plan.seeds.size() >= 3);
  }
  CHECK(studies == 5);
}

}  // namespace engram::harness::study_test
