/// Whoever watches long work hears of it, up to its end.

#include <array>
#include <string>
#include <vector>

#include "apps/run/weights/watched_sources.hpp"
#include "core/error.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::work_watch_test {
namespace {

/// What was done, and how much of it when it was last heard of.
struct Heard {
  std::string what;
  std::int64_t done = 0, all = 0;
};

std::vector<Heard> heard_of(data::PrepareOptions options) {
  std::vector<Heard> heard;
  options.watch = {.begin = [&heard](const std::string& what) { heard.push_back({what}); },
                   .at =
                       [&heard](std::int64_t done, std::int64_t all) {
                         CHECK(done >= heard.back().done);
                         CHECK(done <= all);
                         heard.back() = {heard.back().what, done, all};
                       }};
  data::prepare(options);
  return heard;
}

}  // namespace

TEST_CASE("prepare: whoever watches hears of files and splits") {
  const TemporaryFolder folder;
  const std::string text = small_text(20000), path = put_file(folder / "text", text).string();
  const auto size = std::ssize(text);
  data::PrepareOptions options;
  options.out = folder / "data";
  options.text = path;
  SECTION("characters") {
    const std::vector<Heard> heard = heard_of(options);
    REQUIRE(heard.size() == 6);
    CHECK(heard[0].what == engram::text("reading '", path, "'"));
    CHECK((heard[0].done == size && heard[0].all == size));
    CHECK(heard[2].what == "writing train");
    CHECK((heard[2].done == size * 9 / 10 && heard[2].all == size * 9 / 10));
    CHECK(heard[4].what == "writing test");
  }
  SECTION("subwords") {
    options.kind = data::TokenKind::subword;
    options.subwords.vocabulary = 300;
    const std::vector<Heard> heard = heard_of(options);
    REQUIRE(heard.size() == 7);
    CHECK((heard[0].done == size && heard[0].all == size));
    CHECK(heard[1].what == "counting words");
    CHECK(heard[1].done == heard[1].all);
    CHECK(heard[3].what == "writing train");
    CHECK((heard[3].done == heard[1].all && heard[3].all == heard[1].all));
  }
  SECTION("articles") {
    options.kind = data::TokenKind::word;
    options.text.clear();
    const std::string more = small_text(100'000, 2);
    for (const char* name : {"train", "valid", "test"}) put_file(folder / name, name[1] == 'r' ? more : text);
    options.train = folder / "train";
    options.valid = folder / "valid";
    options.test = folder / "test";
    options.articles.emplace().format = data::ArticleFormat::file;
    const std::vector<Heard> heard = heard_of(options);
    REQUIRE(heard.size() == 8);
    CHECK(heard[0].what == engram::text("reading '", options.train.string(), "'"));
    CHECK((heard[0].done >= 1 << 16 && heard[0].all == std::ssize(more)));
    CHECK(heard[1].done == 0);  // too short to be told of
  }
}

TEST_CASE("tensors that are watched tell what was written of all, whatever their order in the file") {
  const TemporaryFolder folder;
  const std::array<double, 3> wide{1, 2, 3};
  const std::array<float, 5> narrow{4, 5, 6, 7, 8};
  std::vector<std::int64_t> heard;
  const std::vector<TensorSource> sources = watched(
      {host_tensor("narrow", DType::f32, {5}, narrow.data()), host_tensor("wide", DType::f64, {3}, wide.data())},
      [&heard](std::int64_t written, std::int64_t all) {
        CHECK(all == 44);
        heard.push_back(written);
      });
  write_safetensors(folder / "file", sources, {});
  CHECK(heard == std::vector<std::int64_t>{24, 44});
  const SafetensorsFile file(folder / "file");
  CHECK(file.bytes(file.tensors().at("narrow")).size() == 20);
}

}  // namespace engram::harness::work_watch_test
