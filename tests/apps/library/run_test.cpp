/// A run as other programs use it, against the commands and against its checkpoint.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "apps/library/engram/engram.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "apps/run/model/trained_model.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/studies/context/context_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::run_test {
namespace {

std::vector<std::int32_t> test_tokens() {
  const data::DataSet set = context_bench().set();
  const data::TokenView split = set.split("test");
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(split.size()));
  split.copy(0, split.size(), tokens.data());
  return tokens;
}

Run opened(const std::string& name) { return Run::open(context_bench().run(name), {.threads = 1}); }

}  // namespace

TEST_CASE("library: a run scores a text as engram evaluate --exact does") {
  const std::vector<std::int32_t> tokens = test_tokens();
  for (const char* name : {"xl", "windows", "spans"}) {
    INFO(name);
    Run run = opened(name);
    const Score score = run.score(tokens);
    const nlohmann::json said = json_of(study("evaluate", {name}, {"--split", "test", "--exact", "--json"}));
    CHECK(score.scored == std::ssize(tokens) - 1);
    CHECK(said.at("nll").get<double>() == score.nll / static_cast<double>(score.scored));
    CHECK(std::abs(std::log2(score.perplexity()) - score.bits()) < 1e-12);
    // The same text, read instead of taken as ids.
    const std::string text = run.text(tokens);
    CHECK(run.tokens(text) == tokens);
    CHECK(run.score(text).nll == score.nll);
  }
}

TEST_CASE("library: a score is the sum of what the model says of each next token") {
  std::vector<std::int32_t> tokens = test_tokens();
  tokens.resize(120);
  Run run = opened("spans");
  Runtime runtime({}, 1);
  TrainedModel trained(context_bench().run("spans"), CheckpointKind::newest, runtime);
  TokenStream stream(trained.placed());
  double nll = 0;
  for (std::size_t i = 1; i < tokens.size(); ++i)
    nll -= stream.append(std::span(tokens).subspan(i - 1, 1))[static_cast<std::size_t>(tokens[i])];
  CHECK(std::abs(run.score(tokens).nll - nll) < 1e-4 * nll);
}

TEST_CASE("library: a run writes what engram generate writes") {
  Run run = opened("xl");
  const std::string prompt = "an age ago";
  const GenerateOptions options{.length = 40, .sampling = {.temperature = 0.8, .top_k = 5, .seed = 3}};
  const ProcessResult said = run_engram({"generate", context_bench().run("xl"), "--prompt", prompt, "--length", "40",
                                         "--temperature", "0.8", "--top-k", "5", "--seed", "3", "--threads", "1"});
  CHECK(said.out == prompt + run.generate(prompt, options));
  std::string shown;
  run.generate(prompt, options, [&shown](std::string_view piece) { shown += piece; });
  CHECK(shown == run.generate(prompt, options));
  CHECK(run.generate(prompt, {.length = 0}).empty());
}

TEST_CASE("library: a run has the tensors of its checkpoint") {
  Run run = opened("xl");
  const CheckpointFile file(run.checkpoint());
  CHECK(run.step() == 12);
  CHECK(run.vocabulary_size() == context_bench().set().vocabulary().size());
  const std::vector<std::string> names = run.tensor_names();
  CHECK(names.size() > 10);
  for (const std::string& name : names) {
    INFO(name);
    const Tensor tensor = run.tensor(name);
    const std::span<const std::byte> stored = file.bytes(file.at(name));
    REQUIRE(tensor.bytes() == stored.size());
    CHECK(std::equal(stored.begin(), stored.end(), static_cast<const std::byte*>(tensor.raw())));
  }
  const Run moved = std::move(run);
  CHECK(moved.tensor_names() == names);
}

TEST_CASE("library: what a run cannot do names the thing and the value") {
  Run run = opened("xl");
  const auto refused = [&](const auto& call) { return message_of<UsageError>([&] { call(); }); };
  const std::vector<std::int32_t> one{1}, wrong{1, 2, 99999};
  CHECK(refused([&] { run.score(one); }) == "run: a text that is scored must have two tokens or more, got 1");
  CHECK_THAT(refused([&] { run.score(wrong); }), ContainsSubstring("got 99999 at 2"));
  CHECK_THAT(refused([&] { run.score(std::string("an \x01")); }), ContainsSubstring("run: the text"));
  CHECK_THAT(refused([&] { run.generate("an", {.length = -1}); }), ContainsSubstring("got -1"));
  CHECK_THAT(refused([&] { run.tensor("no.such"); }), ContainsSubstring("has no tensor named 'no.such'"));
  CHECK_THROWS_AS(Run::open(context_bench().run("nothing")), FileError);
}

}  // namespace engram::harness::run_test
