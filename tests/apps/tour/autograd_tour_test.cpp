/// docs/guide/autograd-tour*.md show code that is compiled and output that is printed: every listing stands in the
/// source it names, every output is what the program prints.

#include "apps/tour/tour.hpp"

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "tests/apps/tour/tour_page.hpp"
#include "tests/harness/catch.hpp"

namespace engram::tour::autograd_tour_test {
namespace {

namespace fs = std::filesystem;

std::string contents(const std::string& path) {
  std::ifstream in(fs::path(ENGRAM_SOURCE_DIR) / path);
  INFO(path);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

/// What the parts of the tour have, in their order, behind the page that leads to them.
Page all_parts() {
  const auto add = [](auto& to, auto from) { to.insert(to.end(), from.begin(), from.end()); };
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(ENGRAM_SOURCE_DIR) / "docs/guide"))
    if (const std::string name = entry.path().filename().string(); name.starts_with("autograd-tour-"))
      names.insert("docs/guide/" + name);
  Page all = parse_page(contents("docs/guide/autograd-tour.md"));
  for (const std::string& name : names) {
    const Page part = parse_page(contents(name));
    add(all.headings, part.headings);
    add(all.listings, part.listings);
    add(all.outputs, part.outputs);
    add(all.traces, part.traces);
    for (const std::string& fault : part.faults) all.faults.push_back(name + ", " + fault);
    all.text += part.text;
  }
  return all;
}
const Page& page() {
  static const Page parsed = all_parts();
  return parsed;
}

TEST_CASE("autograd tour: every listing is the code that is compiled", "[tour]") {
  CHECK(page().faults == Lines{});
  CHECK(page().listings.size() >= tour_steps().size());
  for (const Listing& listing : page().listings) {
    const std::string fault = listing_fault(listing, lines_of(contents(listing.path)));
    if (!fault.empty()) FAIL_CHECK(fault);
  }
}

TEST_CASE("autograd tour: every output is what the program prints", "[tour]") {
  std::map<std::size_t, std::string> shown;
  for (const Output& output : page().outputs) {
    INFO("step " << output.step);
    CHECK(shown.emplace(output.step, output.text).second);
  }
  CHECK(shown.size() == tour_steps().size());
  for (std::size_t step = 1; step <= tour_steps().size(); ++step) {
    INFO("step " << step);
    std::ostringstream out;
    tour_steps()[step - 1].run(out);
    CHECK(shown[step] == out.str());
  }
}

TEST_CASE("autograd tour: every trace is what the program prints", "[tour]") {
  CHECK(page().traces.size() == 1);
  for (const ShownTrace& shown : page().traces) {
    INFO(shown.operation);
    std::ostringstream out, errors;
    CHECK(run_tour(std::vector<std::string>{"--trace", shown.operation}, out, errors) == 0);
    CHECK(shown.text == out.str());
  }
}

TEST_CASE("autograd tour: the page has the program's steps", "[tour]") {
  std::size_t at = 0;
  for (std::size_t step = 1; step <= tour_steps().size(); ++step) {
    const std::string heading = std::to_string(step) + ". " + std::string(tour_steps()[step - 1].title);
    INFO(heading);
    while (at < page().headings.size() && page().headings[at] != heading) ++at;
    CHECK(at < page().headings.size());
  }
}

TEST_CASE("autograd tour: the page names every header of core and autograd", "[tour]") {
  std::size_t headers = 0;
  for (const std::string folder :
       {"core", "core/rules", "core/files", "autograd"}) {  // their types; the operations are the folders below
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(ENGRAM_SOURCE_DIR) / folder)) {
      if (entry.path().extension() != ".hpp") continue;
      ++headers;
      const std::string path = folder + "/" + entry.path().filename().string();
      if (page().text.find("`" + path + "`") == std::string::npos) FAIL_CHECK("not on the page: " << path);
    }
  }
  CHECK(headers > 30);
}

TEST_CASE("autograd tour: the program prints one step or all", "[tour]") {
  std::ostringstream one, direct, all, none, errors;
  const std::vector<std::string> first{"1"};
  CHECK(run_tour(first, one, errors) == 0);
  scalar_tape(direct);
  CHECK(one.str() == direct.str());

  CHECK(run_tour({}, all, errors) == 0);
  CHECK(all.str().starts_with("== 1. A tape of scalars ==\n" + one.str() + "\n== 2. "));
  CHECK(errors.str().empty());

  const std::vector<std::string> wrong{"16"}, too_many{"1", "2"};
  CHECK(run_tour(wrong, none, errors) == 2);
  CHECK(errors.str().find("1 to 15, got '16'") != std::string::npos);
  CHECK(run_tour(too_many, none, errors) == 2);
  CHECK(errors.str().find("got '1 2'") != std::string::npos);
  CHECK(none.str().empty());
}

TEST_CASE("autograd tour: a page that drifted away is noticed", "[tour]") {
  const Page small = parse_page(
      "## 1. Title\n\n`a/b.cpp`\n\n```cpp\nint x;\n// ...\nint z;\n```\n`autograd_tour 3` prints:\n```text\n1\n\n2\n"
      "```\nprose\n```cpp\nint w;\n```\n");
  CHECK(small.headings == Lines{"1. Title"});
  REQUIRE(small.listings.size() == 1);
  CHECK(small.listings[0].path == "a/b.cpp");
  REQUIRE(small.outputs.size() == 1);
  CHECK(small.outputs[0].step == 3);
  CHECK(small.outputs[0].text == "1\n\n2\n");
  CHECK(small.faults.size() == 1);

  const Listing& listing = small.listings[0];
  CHECK(listing_fault(listing, {"#pragma once", "int x;", "int y;", "int z;"}).empty());
  CHECK_FALSE(listing_fault(listing, {"int x;", "int y;", "int z; "}).empty());
  CHECK_FALSE(listing_fault(listing, {"int z;", "int x;"}).empty());
  CHECK_FALSE(listing_fault({"a/b.cpp", {"int x;", "int z;"}, 1}, {"int x;", "int y;", "int z;"}).empty());
}

}  // namespace
}  // namespace engram::tour::autograd_tour_test
