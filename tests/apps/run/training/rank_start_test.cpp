/// What is agreed upon before several ranks train: the split, and that they have begun alike.

#include <fstream>
#include <mutex>
#include <set>

#include "apps/run/config/config_text.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/rank_split.hpp"
#include "apps/run/training/same_start.hpp"
#include "apps/studies/tape/small_models.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::rank_start_test {
namespace {

std::int64_t split_of(std::int64_t asked, int ranks, std::int64_t batch = 96) {
  RunConfig config;
  config.training.batch = batch;
  config.training.split = asked;
  return split_for_ranks(config, ranks);
}

TEST_CASE("rank split: every rank has a power of two of pieces", "[ranks]") {
  CHECK(split_of(1, 1) == 1);
  CHECK(split_of(3, 1) == 3);  // one rank may have any number
  CHECK(split_of(1, 2) == 2);
  CHECK(split_of(1, 3) == 3);
  CHECK(split_of(4, 2) == 4);
  CHECK(split_of(4, 4) == 4);
  CHECK(split_of(6, 2) == 8);
  CHECK(split_of(6, 3) == 6);
  CHECK(split_of(16, 4) == 16);
  CHECK(split_of(2, 8) == 8);
}

TEST_CASE("rank split: the batch must have as many", "[ranks]") {
  CHECK_THAT(harness::message_of<UsageError>([] { split_of(1, 4, 6); }),
             ContainsSubstring("batch must be a multiple of 4 for 4 ranks, got 6"));
  CHECK_THROWS_AS(split_of(1, 8, 4), UsageError);
}

TEST_CASE("rank split: a run that starts anew says that the one before it had another split", "[ranks]") {
  const harness::TemporaryFolder folder;
  const auto file = folder.path() / "config.toml";
  RunConfig config = parse_run_config(small_model(ModelFamily::all_attention), "small");
  config.training.batch = config.training.split = 2;
  CHECK(other_split_before(file, config).empty());  // nothing began here
  std::ofstream(file) << to_toml(config);
  CHECK(other_split_before(file, config).empty());
  config.training.split = 1;
  CHECK_THAT(other_split_before(file, config),
             ContainsSubstring("had training.split = 2, this one has 1: the last bits will differ\n  --split 2 keeps"));
  std::ofstream(file) << "[training]\nsplit = ";
  CHECK(other_split_before(file, config).empty());
}

/// What every rank throws when rank 1 of 3 differs by what `change` does.
std::set<std::string> messages(const std::function<void(StartFacts&)>& change) {
  std::mutex mutex;
  std::set<std::string> all;
  run_ranks(3, [&](Communicator& ranks) {
    StartFacts facts{.program = "0.1.0 of 123",
                     .config = "[model]\nwidth = 8\n[training]\nbatch = 4\n",
                     .data = "00ff",
                     .device = "cpu",
                     .dtype = "f32",
                     .checkpoint = "none"};
    if (ranks.rank() == 1) change(facts);
    const std::string message = harness::message_of<UsageError>([&] { require_same_start(ranks, facts); });
    const std::lock_guard lock(mutex);
    all.insert(message);
  });
  return all;
}

TEST_CASE("same start: ranks that are alike may begin", "[ranks]") {
  CHECK(messages([](StartFacts&) {}) == std::set<std::string>{""});
}

TEST_CASE("same start: all ranks say the same of one that differs", "[ranks]") {
  const std::string first = "rank 0 (thread 0)", other = "rank 1 (thread 1)";
  CHECK(messages([](StartFacts& facts) { facts.checkpoint = "step 2"; }) ==
        std::set<std::string>{"ranks: the checkpoint must be the same everywhere, got none on " + first +
                              " and step 2 on " + other});
  CHECK(messages([](StartFacts& facts) { facts.program = "0.1.0 of 124"; }) ==
        std::set<std::string>{"ranks: the program must be the same everywhere, got 0.1.0 of 123 on " + first +
                              " and 0.1.0 of 124 on " + other});
  CHECK(messages([](StartFacts& facts) { facts.config = "[model]\nwidth = 16\n[training]\nsplit = 2\nbatch = 4\n"; }) ==
        std::set<std::string>{"ranks: the configuration must be the same everywhere, got\n  model.width = 8 on " +
                              first + ", 16 on " + other + "\n  training.split = (nothing) on " + first + ", 2 on " +
                              other});
}

}  // namespace
}  // namespace engram::rank_start_test
