/// The solutions are right, each known mistake gets its own hint and each hint its own mistake, and files of exercises
/// are where pages say.

#include <cmath>
#include <filesystem>
#include <string>

#include "tests/exercises/checks/exercise.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::exercises::solutions_test {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

const fs::path kRoot = ENGRAM_SOURCE_DIR;

TEST_CASE("exercises: every solution is right") {
  for (const Check& check : all_checks()) {
    const Finding finding = check.of_answer();
    INFO(check.name << ": " << finding.what << "; " << finding.hint);
    CHECK(finding.state == State::right);
  }
}

TEST_CASE("exercises: every known mistake gets its own hint") {
  for (const Check& check : all_checks()) {
    CHECK(check.hints.size() >= 3);
    for (std::size_t i = 0; i < check.hints.size(); ++i) {
      const Finding finding = check.of_mistake(i);
      INFO(check.name << ", " << check.hints[i] << "\n  is told: " << finding.what);
      CHECK(finding.state == State::wrong);
      CHECK(finding.hint == check.hints[i]);
    }
  }
}

TEST_CASE("exercises: each has a stub to write in, a solution, a page and a row in the list of exercises") {
  std::string list;
  for (const std::string& line : source_tree::lines_of(kRoot / "docs/guide/exercises.md")) list += line + '\n';
  int number = 0;
  for (const Check& check : all_checks()) {
    INFO(check.name);
    CHECK(check.number == ++number);
    CHECK(fs::exists(kRoot / "tests/exercises" / (check.name + ".cpp")));
    CHECK(fs::exists(kRoot / "tests/exercises/solutions" / (check.name + ".cpp")));
    CHECK(fs::exists(kRoot / "docs/exercises" / (check.name + ".md")));
    CHECK(list.find("../exercises/" + check.name + ".md") != std::string::npos);
  }
}

Outcome outcome(std::vector<double> numbers, std::size_t columns = 0) {
  return {.parts = {{.name = "x", .numbers = std::move(numbers), .columns = columns}}};
}

TEST_CASE("exercises: what no known mistake explains is described by its numbers") {
  const auto told = [](const Outcome& answer, const Outcome& truth) {
    return judge(answer, truth, [] { return std::vector<KnownMistake>{}; });
  };
  const Outcome truth = outcome({1, 2, 3, 4}, 2);
  CHECK(told(truth, truth).state == State::right);
  CHECK(told(outcome({1, 2, 3, 4 + 1e-9}, 2), truth).state == State::right);
  CHECK(told(outcome({-1, -2, -3, -4}, 2), truth).hint == "every number has the opposite sign.");
  CHECK(told(outcome({3, 6, 9, 12}, 2), truth).hint == "every number is 3 times what it should be.");
  CHECK(told(outcome({1, 3, 2, 4}, 2), truth).hint == "this is the right matrix, transposed.");
  CHECK(told(outcome({0, 0, 0, 0}, 2), truth).hint == "every number is 0.");
  CHECK(told(outcome({1, 2, std::nan(""), 4}, 2), truth).hint.starts_with("there is a nan."));
  CHECK(told(outcome({1, 2, HUGE_VAL, 4}, 2), truth).hint.starts_with("there is an infinity."));
  CHECK(told(outcome({1, 2, 3, 5}, 2), truth).what == "x, at (1, 1): must be 4, got 5");
  CHECK(told(outcome({1, 2}, 2), truth).what == "x: must be 4 numbers, got 2");
}

TEST_CASE("exercises: an answer that stops is told how far it came") {
  Outcome truth = outcome({1});
  truth.parts.push_back({.name = "y", .numbers = {2}});
  const auto told = [&](const Outcome& answer) {
    return judge(answer, truth, [] { return std::vector<KnownMistake>{}; });
  };
  Outcome stopped = outcome({1});
  stopped.not_written = "a.cpp:7";
  CHECK(told(stopped).state == State::not_written);
  CHECK(told(stopped).what == "a.cpp:7 (1 of 2 parts are right)");
  stopped.parts[0].numbers = {3};  // what is wrong comes before what is missing
  CHECK(told(stopped).what == "x: must be 1, got 3");
  Outcome threw = outcome({1});
  threw.error = "no place (2, 0)";
  CHECK(told(threw).state == State::wrong);
  CHECK(told(threw).what == "y: it threw \"no place (2, 0)\"");
}

}  // namespace
}  // namespace engram::exercises::solutions_test
