/// `engram report --tensorboard`: the event files have the numbers of metrics.jsonl, of runs of every kind.

#include "apps/studies/tensorboard/tensorboard_export.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/folder/provenance.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/report/event_file_reader.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::tensorboard_export_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

/// The points of a tag by step; each step has one.
std::map<std::int64_t, ReadEvent> curve(const std::vector<ReadEvent>& events, const std::string& tag) {
  std::map<std::int64_t, ReadEvent> found;
  for (const ReadEvent& event : events)
    if (event.tag == tag) CHECK(found.emplace(event.step, event).second);
  return found;
}

/// A tag has what the lines of an event have by a name.
void check_curve(const std::vector<ReadEvent>& events, const std::string& tag, const std::vector<json>& lines,
                 const std::function<double(const json&)>& value) {
  INFO(tag);
  const auto points = curve(events, tag);
  CHECK(points.size() == lines.size());
  for (const json& line : lines) {
    const auto point = points.find(line.at("step").get<std::int64_t>());
    REQUIRE(point != points.end());
    CHECK(point->second.value == static_cast<float>(value(line)));
    CHECK(point->second.wall_time == static_cast<double>(utc_seconds(line.at("time").get<std::string>()).value()));
  }
}

auto member(const char* name) {
  return [name](const json& line) { return line.at(name).get<double>(); };
}

TEST_CASE("tensorboard: the numbers of a run that was stopped and went on, and its samples") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"training.sample_every=7", "training.sample_prompt=ago\nage "};
  CHECK_THROWS_AS(run_training(options, after_steps(12)), Interrupted);
  // A step that was reported and then lost.
  fs::copy_file(options.out / "metrics.jsonl", folder / "kept");
  put_file(options.out / "metrics.jsonl",
           get_file(folder / "kept") + R"({"event":"train","step":15,"nll":99,"time":"2026-01-01T00:00:00Z"})" + "\n");
  options.resume = true;
  run_training(options, never());

  const TensorboardExport written = write_tensorboard({options.out}, folder / "tb");
  REQUIRE(written.runs.size() == 1);
  CHECK(written.runs[0].file == folder / "tb/run/events.out.tfevents.engram");
  const std::vector<ReadEvent> events = events_of(get_file(written.runs[0].file));
  CHECK(std::ssize(events) == written.runs[0].scalars + written.runs[0].samples);
  CHECK(std::ranges::is_sorted(events, {}, &ReadEvent::step));

  const std::vector<json> trained = read_reports(options.out / "metrics.jsonl", "train"),
                          validated = read_reports(options.out / "metrics.jsonl", "valid_short"),
                          samples = read_reports(options.out / "metrics.jsonl", "sample");
  REQUIRE(trained.size() == 5);
  REQUIRE(samples.size() == 4);
  check_curve(events, "loss/train", trained, member("nll"));
  check_curve(events, "bpc/train", trained, member("bpc"));
  check_curve(events, "loss/valid", validated, member("nll"));
  check_curve(events, "bpc/valid", validated, member("bpc"));
  check_curve(events, "rate", trained, member("learning_rate"));
  check_curve(events, "gradient_norm", trained, member("gradient_norm"));
  check_curve(events, "clipped", trained, member("tensors_above_clip"));
  check_curve(events, "tokens_per_second/train", trained, member("tokens_per_second"));
  check_curve(events, "tokens_per_second/valid", validated, member("tokens_per_second"));
  check_curve(events, "span/mean", trained, member("span_mean"));
  check_curve(events, "span/longest", trained, member("span_longest"));
  for (const std::size_t layer : {0u, 1u})
    check_curve(events, text("span/layer_", layer), trained, [layer](const json& line) {
      const auto heads = line.at("spans").at(layer).get<std::vector<double>>();
      return std::accumulate(heads.begin(), heads.end(), 0.0) / static_cast<double>(heads.size());
    });
  const auto texts = curve(events, "sample");
  CHECK(texts.size() == samples.size());
  for (const json& sample : samples) {
    // Indented, so that it is shown as it is.
    std::string expected = "\n" + sample.at("prompt").get<std::string>() + sample.at("text").get<std::string>();
    for (std::size_t at = 0; (at = expected.find('\n', at)) != std::string::npos; ++at) expected.insert(at + 1, "    ");
    CHECK("\n" + texts.at(sample.at("step").get<std::int64_t>()).shown == expected);
  }

  // Again, in the place of the old one; and by the command.
  const std::string first = get_file(written.runs[0].file);
  const json said =
      json_of({"report", options.out.string() + "/", "--tensorboard", (folder / "tb").string(), "--json"});
  CHECK(get_file(written.runs[0].file) == first);
  CHECK(said.at("runs").at(0).at("numbers") == written.runs[0].scalars);
  CHECK(said.at("runs").at(0).at("samples") == 4);
  CHECK(std::distance(fs::directory_iterator(folder / "tb/run"), {}) == 1);

  // A file that says the beginning, even if its last record is torn, is gone on with: a second name of it sees that.
  fs::create_hard_link(written.runs[0].file, folder / "open");
  fs::resize_file(folder / "open", first.size() / 2);
  write_tensorboard({options.out}, folder / "tb");
  CHECK(get_file(folder / "open") == first);
  // Another one is replaced.
  put_file(written.runs[0].file, "x" + first);
  write_tensorboard({options.out}, folder / "tb");
  CHECK(get_file(written.runs[0].file) == first);
}

TEST_CASE("tensorboard: memories have curves by layer, words perplexities") {
  const RunFolder folder(6000, 1, data::TokenKind::word);
  const TrainingRunOptions options = memory_run(folder, "run");
  run_training(options, never());
  const auto written = write_tensorboard({options.out}, folder / "tb");
  const std::vector<ReadEvent> events = events_of(get_file(written.runs.at(0).file));
  const std::vector<json> trained = read_reports(options.out / "metrics.jsonl", "train"),
                          validated = read_reports(options.out / "metrics.jsonl", "valid_short");
  check_curve(events, "ppl/train", trained, member("ppl"));
  check_curve(events, "bits/valid", validated, member("bits"));
  check_curve(events, "ppl_no_eol/valid", validated, member("ppl_no_eol"));
  for (const std::size_t memory : {0u, 1u}) {
    const std::string layer = text("memory/layer_", 1 + 2 * memory, "/");
    for (const char* what : {"usage", "top_usage", "kl"})
      check_curve(events, layer + what, validated,
                  [&](const json& line) { return line.at(std::string("memory_") + what).at(memory).get<double>(); });
  }
  for (const ReadEvent& event : events) CHECK_FALSE(event.tag.starts_with("span/"));
}

TEST_CASE("tensorboard: logs without times, without numbers, without reports") {
  const TemporaryFolder folder;
  const auto run = [&folder](const std::string& name, const std::string& log) {
    fs::create_directories(folder / name);
    return put_file(folder / name / "metrics.jsonl", log);
  };
  const std::string start = "{\"event\":\"start\",\"step\":0}\n";
  const auto train = [](int step, const std::string& rest) {
    return text(R"({"event":"train","step":)", step, R"(,"nll":1.5)", rest, "}\n");
  };
  const fs::path old = run("old", start + train(1, "") + train(2, R"(,"gradient_norm":null,"learning_rate":0)"));
  const auto changed = std::chrono::sys_days(std::chrono::year(2020) / 2 / 3) + std::chrono::seconds(7);
  fs::last_write_time(old, std::chrono::file_clock::from_sys(changed));
  const std::vector<SummaryEvent> events = run_events(old).events;
  REQUIRE(events.size() == 2);
  const double written = static_cast<double>(changed.time_since_epoch().count());
  for (const SummaryEvent& event : events) CHECK(event.wall_time == written);
  CHECK(events[0].scalars == std::vector<std::pair<std::string, double>>{{"loss/train", 1.5}});
  CHECK(events[1].scalars == std::vector<std::pair<std::string, double>>{{"loss/train", 1.5}, {"rate", 0}});

  // Begun by an older version: what has no time is not later than what follows.
  const std::vector<SummaryEvent> mixed =
      run_events(run("mixed", start + train(1, "") + train(2, R"(,"time":"1970-01-02T00:00:01Z")") +
                                  train(3, R"(,"time":"soon")")))
          .events;
  REQUIRE(mixed.size() == 3);
  CHECK(mixed[0].wall_time == 86401);
  CHECK(mixed[1].wall_time == 86401);
  CHECK(mixed[2].wall_time > 1.7e9);

  run("begun", start);
  const TensorboardExport begun = write_tensorboard({folder / "begun"}, folder / "tb");
  CHECK(begun.runs.at(0).scalars == 0);
  CHECK(events_of(get_file(begun.runs.at(0).file)).empty());

  // From before the first report on, the file is appended to: a second name of it sees that.
  const std::string timed = R"({"event":"start","step":0,"time":"2020-01-01T00:00:00Z"})"
                            "\n";
  run("early", timed);
  const fs::path early = write_tensorboard({folder / "early"}, folder / "tb").runs.at(0).file;
  fs::create_hard_link(early, folder / "open");
  run("early", timed + train(1, R"(,"time":"2020-01-01T00:01:00Z")"));
  write_tensorboard({folder / "early"}, folder / "tb");
  CHECK(events_of(get_file(folder / "open")).size() == 1);
}

TEST_CASE("tensorboard: lines that are no reports are left out and told, and the other runs are written") {
  const TemporaryFolder folder;
  const auto run = [&folder](const std::string& name, const std::string& log) {
    fs::create_directories(folder / name);
    put_file(folder / name / "metrics.jsonl", log);
    return (folder / name).string();
  };
  const std::string good = "{\"event\":\"start\",\"step\":0}\n{\"event\":\"train\",\"step\":1,\"nll\":1.5,\"bpc\":1}\n",
                    bad = good + R"({"event":"train","st)" + "\n" + R"({"event":"train","step":1e300,"nll":2})" + "\n" +
                          R"({"event":"train","step":2,"nll":1.5,"spans":["a"]})" + "\n" +
                          R"({"event":"train","step":3,"nll":2.5})" + "\n";
  const std::string first = run("bad", bad), second = run("good", good), tb = (folder / "tb").string();
  const ProcessResult result =
      run_engram({"report", first, second, "--tensorboard", tb, "--out", (folder / "p").string()});
  INFO(result.err);
  CHECK(result.exit_code == 0);
  CHECK_THAT(result.err, ContainsSubstring("line 3 of '" + first +
                                           "/metrics.jsonl' is no report and is left out: it is "
                                           "no JSON; so are 2 more lines"));
  CHECK(fs::exists(folder / "p"));
  CHECK(curve(events_of(get_file(folder / "tb/bad/events.out.tfevents.engram")), "loss/train").size() == 2);
  CHECK(curve(events_of(get_file(folder / "tb/good/events.out.tfevents.engram")), "loss/train").size() == 1);
}

TEST_CASE("tensorboard: runs have names of their own; what cannot be is refused before anything is written") {
  const TemporaryFolder folder;
  const std::string log = "{\"event\":\"start\",\"step\":0}\n";
  for (const char* name : {"a/one", "a/two", "b/one"}) {
    fs::create_directories(folder / name);
    put_file(folder / name / "metrics.jsonl", log);
  }
  const auto files = [&](const std::vector<fs::path>& runs) {
    std::vector<std::string> names;
    for (const ExportedRun& run : write_tensorboard(runs, folder / "tb").runs)
      names.push_back(run.file.parent_path().lexically_relative(folder / "tb").string());
    return names;
  };
  CHECK(files({folder / "a/one", folder / "a/two/"}) == std::vector<std::string>{"one", "two"});
  CHECK(files({folder / "a/one", folder / "a/two", folder / "b/one"}) ==
        std::vector<std::string>{"a/one", "a/two", "b/one"});

  fs::remove_all(folder / "tb");
  const auto refused = [&](const std::vector<fs::path>& runs) {
    const std::string message = message_of<UsageError>([&] { write_tensorboard(runs, folder / "tb"); });
    CHECK_FALSE(fs::exists(folder / "tb/one"));
    return message;
  };
  CHECK_THAT(refused({folder / "a/one", folder / "b/../a/one/"}), ContainsSubstring("must be named once, got '"));
  CHECK_THAT(refused({folder / "a/one", folder / "b"}),
             ContainsSubstring("must be a folder with metrics.jsonl, got '"));
  CHECK_THAT(refused({}), ContainsSubstring("at least one run"));
  fs::create_directories(folder / "tb/two");
  put_file(folder / "tb/two/events.out.tfevents.1700000000.host", "");
  CHECK_THAT(refused({folder / "a/one", folder / "a/two"}),
             ContainsSubstring("must hold no other event files, got 'events.out.tfevents.1700000000.host'"));
}

TEST_CASE("tensorboard: times of the log are read as seconds") {
  CHECK(utc_seconds("1970-01-01T00:00:00Z") == 0);
  CHECK(utc_seconds("2000-02-29T23:59:59Z") == 951868799);
  CHECK(utc_seconds("2026-11-26T02:45:00Z") == 1795661100);
  CHECK(utc_seconds(utc_now()).value() > 1.7e9);
  for (const char* wrong : {"", "2026-11-26T02:45:00", "2026-11-26 02:45:00Z", "2026-02-30T00:00:00Z",
                            "2026-13-01T00:00:00Z", "2026-11-26T24:00:00Z", "2026-11-26T02:4a:00Z"})
    CHECK_FALSE(utc_seconds(wrong).has_value());
}

}  // namespace
}  // namespace engram::harness::tensorboard_export_test
