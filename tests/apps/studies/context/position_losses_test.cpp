/// Losses of positions by context length, against one position read token by token, and `engram recl`.

#include "apps/studies/context/position_losses.hpp"
#include "core/files/json.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/studies/context/context_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::position_losses_test {
namespace {

/// The context as one text of its own, a token at a time where the model remembers, else all at once.
double direct_loss(const StudiedRun& run, data::TokenView tokens, std::int64_t position, std::int64_t context) {
  Runtime runtime({}, 1);
  TrainedModel trained(run.checkpoint, CheckpointKind::newest, runtime, DType::f64);
  const bool is_xl = run.config.model.family == ModelFamily::transformer_xl;
  if (is_xl && run.remembers()) transformer_xl_of(trained).set_context({.memory = 1000});
  TokenStream stream({trained.model(), runtime, DType::f64});
  std::vector<std::int32_t> text;
  for (std::int64_t i = position - context; i < position; ++i) text.push_back(tokens[i]);
  std::span<const double> next;
  if (run.remembers())
    for (const std::int32_t token : text) next = stream.append(std::array{token});
  else
    next = stream.append(text);
  return -next[static_cast<std::size_t>(tokens[position])];
}

Arguments recl(const std::vector<std::string>& runs, const Arguments& more) { return study("recl", runs, more); }

const Arguments kShort{"--first", "5", "--step", "5", "--longest", "20", "--positions", "40"};

Arguments with(Arguments arguments, const Arguments& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

}  // namespace

TEST_CASE("positions: drawn once each, with enough before them, the same for the same seed") {
  const std::vector<std::int32_t> ids(100, 0);
  const data::TokenView tokens(ids);
  const std::vector<std::int64_t> positions = draw_positions(tokens, 20, 30, 7);
  CHECK(positions.size() == 20);
  CHECK(std::ranges::is_sorted(positions));
  CHECK(std::ranges::adjacent_find(positions) == positions.end());
  CHECK(positions.front() >= 30);
  CHECK(positions.back() < 100);
  CHECK(draw_positions(tokens, 20, 30, 7) == positions);
  CHECK(draw_positions(tokens, 20, 30, 8) != positions);
  const std::vector<std::int64_t> all = draw_positions(tokens, 70, 30, 7);
  for (std::int64_t i = 0; i < 70; ++i) CHECK(all[static_cast<std::size_t>(i)] == 30 + i);
  CHECK_THAT(message_of<UsageError>([&] { draw_positions(tokens, 71, 30, 7); }),
             ContainsSubstring("--positions") && ContainsSubstring("70 of 100") && ContainsSubstring("got 71"));
  CHECK_THROWS_AS(draw_positions(tokens, 1, 100, 7), UsageError);
}

TEST_CASE("position losses: every position is its context read from nothing", "[night]") {
  const data::DataSet set = context_bench().set();
  const data::TokenView tokens = set.split("valid");
  const std::vector<std::int64_t> positions{40, 41, 97, 300};
  for (const StudiedRun& run : context_bench().open({"xl", "shaw", "windows", "vanilla", "learned", "spans"})) {
    INFO(run.name);
    Runtime runtime({}, 1);
    PositionReader reader(run, tokens, positions, std::nullopt, runtime, DType::f64);
    for (const std::int64_t length : {1, 9, 12, 40}) {
      const std::vector<double> losses = reader.exact(length);
      REQUIRE(losses.size() == positions.size());
      const std::int64_t read = std::min(length, PositionReader::longest(run).value_or(length));
      for (std::size_t i = 0; i < positions.size(); ++i)
        CHECK(losses[i] == Approx(direct_loss(run, tokens, positions[i], read)).epsilon(1e-10));
    }
  }
}

TEST_CASE("position losses: many positions do not fit into one block") {
  const data::DataSet set = context_bench().set();
  const data::TokenView tokens = set.split("valid");
  Runtime runtime({}, 1);
  const StudiedRun run = context_bench().open({"xl"}).front();
  const std::vector<std::int64_t> positions = draw_positions(tokens, 60, 200, 1);
  PositionReader reader(run, tokens, positions, std::nullopt, runtime, DType::f64);
  std::vector<std::int64_t> heard;
  reader.watch([&heard](std::int64_t read, std::int64_t) { heard.push_back(read); });
  const std::vector<double> losses = reader.exact(200);  // 40 of them in a block
  CHECK(heard == std::vector<std::int64_t>{40, 60});
  REQUIRE(losses.size() == 60);
  for (const std::size_t i : {0, 39, 40, 59})
    CHECK(losses[i] == Approx(direct_loss(run, tokens, positions[i], 200)).epsilon(1e-10));
}

TEST_CASE("position losses: windowed ones are those of an exact evaluation with same_length") {
  const data::DataSet set = context_bench().set();
  const data::TokenView tokens = set.split("valid");
  const std::vector<std::int64_t> positions = draw_positions(tokens, 50, 30, 3);
  for (const StudiedRun& run : context_bench().open({"xl", "vanilla"})) {
    INFO(run.name);
    Runtime runtime({}, 1);
    PositionReader reader(run, tokens, positions, std::nullopt, runtime, DType::f64);
    const std::vector<double> losses = reader.windowed(9);
    if (!run.remembers()) {
      CHECK(losses == reader.exact(9));
      continue;
    }
    ContextOptions context;
    context.memory = 9;
    context.visibility = Visibility::last_memory;
    TrainedModel trained(run.checkpoint, CheckpointKind::newest, runtime, DType::f64,
                         [&](ModelOptions& model) { context.apply(model, "test"); });
    std::vector<double> expected;
    evaluate_split(trained, tokens, {.exact = true, .batch = 1}, {.found = [&](std::int64_t token, double nll) {
                     if (std::ranges::binary_search(positions, token)) expected.push_back(nll);
                   }});
    REQUIRE(expected.size() == losses.size());
    double leak = 0;
    const std::vector<double> exact = reader.exact(9);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      CHECK(losses[i] == Approx(expected[i]).epsilon(1e-10));
      leak = std::max(leak, std::abs(losses[i] - exact[i]));
    }
    CHECK(leak > 1e-6);
  }
}

TEST_CASE("recl: one object, a table and a CSV file of the same figures") {
  const std::string csv = (context_bench() / "recl.csv").string();
  const ProcessResult result = run_engram(recl({"xl", "vanilla"}, with(kShort, {"--json", "--csv", csv})));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const nlohmann::json object = nlohmann::json::parse(result.out);
  CHECK(object.at("method") == "exact");
  CHECK(object.at("positions") == 40);
  CHECK(object.at("lengths") == std::vector<int>{5, 10, 15, 20});
  REQUIRE(object.at("runs").size() == 2);
  const nlohmann::json& vanilla = object.at("runs").at(1);
  CHECK(vanilla.at("reads_at_most") == 14);
  CHECK(object.at("runs").at(0).at("reads_at_most").is_null());
  CHECK(vanilla.at("mean_losses").at(2) == vanilla.at("mean_losses").at(3));
  CHECK(vanilla.at("mean_losses").at(1) != vanilla.at("mean_losses").at(2));
  for (const nlohmann::json& recl : vanilla.at("recl")) {
    CHECK(recl.at("gains").size() == 3);
    CHECK(recl.at("length") <= 14);
    CHECK(recl.at("at_least") == false);
  }
  const std::string lines = get_file(csv);
  CHECK(
      lines.starts_with("run,share,length,next_length,mean_loss,next_mean_loss,relative_loss,next_relative_loss,gain,"
                        "recl,at_least\n"));
  CHECK(std::ranges::count(lines, '\n') == 1 + 2 * 3 * 3);

  const ProcessResult table = run_engram(recl({"xl", "vanilla"}, with(kShort, {"--method", "windowed"})));
  CHECK(table.exit_code == 0);
  CHECK_THAT(table.out, ContainsSubstring("r = 0.1") &&
                            ContainsSubstring("vanilla has no memory and reads 14 tokens") &&
                            ContainsSubstring("xl is measured in one pass") && ContainsSubstring("leak"));
  // A threshold of nothing is reached by any gain, so the last length is a bound.
  const ProcessResult bound = run_engram(recl({"xl", "vanilla"}, with(kShort, {"--threshold", "0"})));
  CHECK_THAT(bound.out, ContainsSubstring(">= 20"));
}

TEST_CASE("recl: what cannot be compared is refused", "[night]") {
  const auto refused = [](const Arguments& arguments, const std::vector<std::string>& parts) {
    const ProcessResult result = run_engram(arguments);
    INFO(result.err);
    CHECK(result.exit_code != 0);
    CHECK(result.out.empty());
    for (const std::string& part : parts) CHECK_THAT(result.err, ContainsSubstring(part));
  };
  refused(recl({"xl"}, kShort), {"two or more runs"});
  refused(recl({"xl", "xl"}, kShort), {"given once", "xl"});
  refused(recl({"xl", "spans"}, with(kShort, {"--method", "windowed"})), {"'spans'", "all_attention"});
  refused(recl({"xl", "vanilla"}, with(kShort, {"--method", "fast"})), {"--method", "'fast'"});
  refused(recl({"xl", "vanilla"}, with(kShort, {"--ratios", "0.5,2"})), {"--ratios", "0.5,2"});
  refused(recl({"xl", "vanilla"}, with(kShort, {"--tokens", "50"})), {"--positions", "30 of 50", "got 40"});
  refused(recl({"xl", "vanilla"}, {"--longest", "150"}), {"--longest", "200"});
  refused(recl({"xl", "vanilla"}, {"--first", "1", "--step", "1", "--longest", "1000000000000"}),
          {"--longest must be below the number of tokens", "got 1000000000000"});
  refused(recl({"xl", "vanilla"}, with(kShort, {"--threshold", "nan"})), {"--threshold", "nan"});
  // Other words than the data's.
  const RunFolder other(6000, 2, data::TokenKind::word);
  Arguments foreign = recl({"xl", "vanilla"}, kShort);
  *std::ranges::find(foreign, context_bench().data().string()) = other.data().string();
  refused(foreign, {"vocabulary", "xl"});
}

}  // namespace engram::harness::position_losses_test
