/// docs/reference/training.md names everything that a run's log says, and data-files.md everything of a split.

#include <filesystem>
#include <set>
#include <sstream>
#include <string>

#include "apps/terminal/signals.hpp"
#include "core/files/json.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::log_page_test {
namespace {

std::string reference_page(const char* name) {
  return get_file(std::filesystem::path(ENGRAM_SOURCE_DIR) / "docs/reference" / name);
}

/// Members of a run's log, and the events themselves.
void add_names(std::set<std::string>& names, const std::filesystem::path& run) {
  std::istringstream lines(get_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    names.insert(object.at("event").get<std::string>());
    for (const auto& [member, value] : object.items()) names.insert(member);
  }
}

void require_named(const std::set<std::string>& names, const std::string& page) {
  for (const std::string& name : names) {
    INFO(name);
    CHECK(page.find("`" + name + "`") != std::string::npos);
  }
}

TEST_CASE("log page: every event and every member is on the page of training") {
  std::set<std::string> names;
  {
    const RunFolder folder;
    TrainingRunOptions options = run_options(folder, "characters");
    options.overrides = {"training.gradient_report=true", "training.sample_every=8", "training.weight_average=true"};
    CHECK_THROWS_AS(run_training(options, after_steps(3)), Interrupted);
    options.resume = true;
    run_training(options, never());
    add_names(names, options.out);
    const TrainingRunOptions memories = memory_run(folder, "memories");
    run_training(memories, never());
    add_names(names, memories.out);
  }
  {
    const RunFolder folder(6000, 1, data::TokenKind::word);
    const TrainingRunOptions options = run_options(folder, "words");
    run_training(options, never());
    add_names(names, options.out);
  }
  for (const char* one : {"start", "resume", "interrupted", "end", "sample", "gradients", "memory_kl", "ppl_no_eol"}) {
    INFO(one);
    CHECK(names.contains(one));
  }
  names.erase("event");
  require_named(names, reference_page("training.md"));
}

TEST_CASE("log page: every member of data.json but options is on the page of data files") {
  const std::string page = reference_page("data-files.md");
  for (const data::TokenKind kind : {data::TokenKind::character, data::TokenKind::word}) {
    const RunFolder folder(2000, 1, kind);
    const nlohmann::json all = nlohmann::json::parse(get_file(folder.data() / "data.json"));
    std::set<std::string> names{"format",          "version",         "kind",    "rule",   "rules",
                                "vocabulary_size", "vocabulary_hash", "sources", "splits", "notes"};
    for (const std::string& name : names) {
      INFO(name);
      CHECK(all.contains(name));
    }
    for (const auto& [split, members] : all.at("splits").items())
      for (const auto& [member, value] : members.items()) names.insert(member);
    require_named(names, page);
  }
}

}  // namespace
}  // namespace engram::harness::log_page_test
