/// `engram report`: the page against the logs and checkpoints that it is made of, hostile names, and input that is bad.

#include "apps/studies/page/page_html.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "apps/data/text/utf8.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/folder/run_lock.hpp"
#include "apps/studies/page/page_text.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/studies/page/page_contents.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::page_test {
namespace {

namespace fs = std::filesystem;

Page page_of(const std::vector<std::string>& arguments) {
  PageSources sources = find_sources(arguments);
  Page page;
  page.problems = sources.problems;
  for (const PageSource& source : sources.runs) page.runs.push_back(open_run(source));
  return page;
}

/// The numbers of a series of the page are those of the log.
void check_series(const nlohmann::json& series, const std::vector<nlohmann::json>& lines, const char* member) {
  const std::vector<float> x = unpacked_floats(series.at("x")), y = unpacked_floats(series.at("y"));
  REQUIRE(x.size() == lines.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(x[i] == lines[i].at("step").get<float>());
    CHECK(y[i] == static_cast<float>(lines[i].at(member).get<double>()));
  }
}

TEST_CASE("a page has the numbers of the log, a row for the run, and asks nothing of anybody") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"training.gradient_report=true"};
  run_training(options, never());
  const auto result = run_engram({"report", (folder / "run").string(), "--data", folder.data().string(), "--out",
                                  (folder / "page.html").string()});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK_THAT(result.out, ContainsSubstring("page.html: 1 run, "));
  const std::string html = get_file(folder / "page.html");
  const auto metrics = folder / "run" / "metrics.jsonl";
  const nlohmann::json data = data_of(html), run = data.at("runs").at(0), study = data.at("studies").at(0);
  const auto train = read_reports(metrics, "train"), valid = read_reports(metrics, "valid_short");
  check_series(run.at("train").at("loss"), train, "nll");
  check_series(run.at("train").at("rate"), train, "learning_rate");
  check_series(run.at("train").at("gradient_norm"), train, "gradient_norm");
  check_series(run.at("train").at("clock"), train, "seconds");
  check_series(run.at("train").at("mean_span"), train, "span_mean");
  check_series(run.at("valid").at("loss"), valid, "nll");
  // All heads of all reports.
  const std::vector<float> spans = unpacked_floats(run.at("spans").at("values"));
  REQUIRE(spans.size() == train.size() * 4);
  for (std::size_t i = 0; i < train.size(); ++i)
    for (std::size_t k = 0; k < 4; ++k)
      CHECK(spans[4 * i + k] == train[i].at("spans").at(k / 2).at(k % 2).get<float>());
  // The head: state, score and the command, for people.
  double best = std::numeric_limits<double>::infinity();
  for (const auto& line : valid) best = std::min(best, line.at("nll").get<double>());
  CHECK_THAT(html, ContainsSubstring(score_text("bpc", best)) && ContainsSubstring("bits per character") &&
                       ContainsSubstring(">done<"));
  CHECK_THAT(html, ContainsSubstring("The same again:") && ContainsSubstring("Program, machine and data"));
  CHECK_THAT(html, ContainsSubstring("model.max_span") || ContainsSubstring("max_span = 48"));
  // Every parameter, with the gradients of the last report.
  const CheckpointFile checkpoint(checkpoint_path(folder / "run", CheckpointKind::newest));
  std::set<std::string> names;
  for (const auto& tensor : study.at("tensors")) names.insert(tensor.at("name"));
  for (const std::string& name : checkpoint.names()) CHECK(names.contains(name) == is_parameter_name(name));
  const auto gradients = read_reports(metrics, "gradients").back().at("tensors");
  CHECK(study.at("gradients").size() == gradients.size());
  CHECK(study.at("gradients").at(gradients.at(0).at("name").get<std::string>()).at("norm") ==
        gradients.at(0).at("norm"));
  // Attention of all heads, and samples after three beginnings.
  CHECK(study.at("attention").at("heads").size() == 4);
  CHECK(count_of(html, "data-label=\"drawn\"") == 3);
  // Nothing of the network: no address but in what may be read, and a policy that says so.
  CHECK_THAT(html, ContainsSubstring("default-src 'none'"));
  const std::string page = html.substr(0, html.find("<script type="));
  CHECK(!std::regex_search(page, std::regex("(src|href)=\"(?!data:|#)")));
  CHECK(count_of(html, "<script") == 3);
}

TEST_CASE("names, prompts and commands of a run are text, whatever stands in them") {
  const TemporaryFolder folder;
  const std::string evil = "a\"'><script>alert(1)<\\u003c";
  const fs::path run = folder.path() / "x\"><img src=x onerror=alert(1)>'";
  fs::create_directories(run);
  const nlohmann::json hostile = evil + "</script><!--\x01\xff";
  const auto line = [](nlohmann::json object) {
    return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  };
  put_file(
      run / "metrics.jsonl",
      line({{"event", "start"}, {"step", 0}, {"command", {"engram", hostile}}, {"host", hostile}, {"data", hostile}}) +
          line({{"event", "train"}, {"step", 1}, {"nll", 1}, {"bpc", 1}}) +
          line({{"event", "sample"}, {"step", 1}, {"prompt", hostile}, {"text", hostile}}) +
          line({{"event", "diverged"}, {"step", 1}, {"reason", hostile}}));
  put_file(run / "config.toml", "[model]\nname = \"" + evil + "\"\n");
  const std::string html = html_of(page_of({run.string(), (folder / "<b>none</b>").string()}));
  // Three scripts: the data, the library and the page's own.
  CHECK(count_of(html, "<script") == 3);
  CHECK(count_of(html, "</script") == 3);
  CHECK(count_of(html, "<img") == 0);
  CHECK(count_of(html, "<b>none") == 0);
  CHECK(count_of(html, "<!--") == 1);
  CHECK(data_of(html).at("runs").at(0).at("name") == run.filename().string());
  CHECK(data::find_invalid_utf8(html) == html.size());
}

TEST_CASE("what cannot be read is one line each, and the other runs are shown", "[night]") {
  const RunFolder folder;
  run_training(run_options(folder, "good"), never());
  for (const char* const name : {"torn", "other", "broken", "empty", "none"}) fs::create_directories(folder / name);
  fs::copy(folder / "good", folder / "torn", fs::copy_options::recursive);
  std::string log = get_file(folder / "torn" / "metrics.jsonl");
  log.insert(log.find('\n') + 1, "{\"event\":\"train\",\"st\n");
  put_file(folder / "torn" / "metrics.jsonl", log);
  put_file(folder / "other" / "metrics.jsonl", "");
  put_file(folder / "other" / "config.toml", "[model]\nkey_of_another_version = 1\n");
  fs::create_directories(folder / "broken" / "checkpoint");
  put_file(folder / "broken" / "metrics.jsonl", "");
  put_file(folder / "broken" / "checkpoint" / "model.safetensors", "no checkpoint");
  put_file(folder / "empty" / "config.toml", "");
  const auto path = [&folder](const char* name) { return (folder / name).string(); };
  const auto result = run_engram({"report", path("good"), path("torn"), path("other"), path("broken"), path("empty"),
                                  path("none"), path("nothing"), "--out", path("page.html"), "--length", "5"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const std::string html = get_file(folder / "page.html");
  CHECK(data_of(html).at("runs").size() == 5);
  for (const char* const name : {"torn", "other", "broken", "none", "nothing"}) {
    CAPTURE(name);
    std::istringstream lines(result.err);
    std::int64_t told = 0;
    for (std::string line; std::getline(lines, line);) told += line.find("'" + path(name)) != std::string::npos ? 1 : 0;
    CHECK(told == 1);
  }
  CHECK(count_of(result.err, path("good") + "/") == 0);
  CHECK_THAT(html, ContainsSubstring("What could not be read") && ContainsSubstring("key_of_another_version") &&
                       ContainsSubstring("not begun"));
  CHECK_THAT(run_engram({"report", path("none"), "--out", path("never.html")}).err,
             ContainsSubstring("must be a run, a sweep or"));
  CHECK(!fs::exists(folder / "never.html"));
  // Nothing is written over that is no report.
  const auto refused = run_engram({"report", path("good"), "--out", path("good/config.toml")});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("nothing is written over"));
}

TEST_CASE("states and reasons of runs are those of their logs, and the best is of runs of the same data") {
  const TemporaryFolder folder;
  const auto put = [&folder](const std::string& name, const std::string& data, double nll, const std::string& end) {
    fs::create_directories(folder / name);
    put_file(folder / name / "metrics.jsonl",
             text("{\"event\":\"start\",\"step\":0,\"steps\":9,\"data\":\"", data, "\"}\n",
                  "{\"event\":\"train\",\"step\":5,\"nll\":2,\"ppl\":2,\"tokens_per_second\":7}\n",
                  "{\"event\":\"valid_short\",\"step\":5,\"nll\":", nll, "}\n", end));
    return (folder / name).string();
  };
  const Page page = page_of({put("a", "x", 2, "{\"event\":\"end\",\"step\":9}\n"),
                             put("b", "x", 1.5, "{\"event\":\"interrupted\",\"step\":7}\n"),
                             put("c", "y", 1, "{\"event\":\"diverged\",\"step\":6,\"reason\":\"training: it did\"}\n"),
                             put("d", "x", 3, ""),
                             put("e", "x", 4, "{\"event\":\"out_of_memory\",\"step\":5,\"reason\":\"none left\"}\n")});
  std::vector<RunSummary> runs;
  for (const PageRun& run : page.runs) runs.push_back(summary_of(run));
  REQUIRE(runs.size() == 5);
  using enum PageState;
  const PageState states[] = {done, interrupted, diverged, stopped, out_of_memory};
  for (std::size_t i = 0; i < 5; ++i) CHECK(name_of(runs[i].state) == name_of(states[i]));
  CHECK(runs[2].reason == "it did");
  CHECK(best_runs(runs) == std::vector<std::size_t>{1});
  const std::string html = html_of(page);
  CHECK_THAT(html, ContainsSubstring("<b>b</b> is best of the 4 runs on the same data (a, b, d, e)") &&
                       ContainsSubstring("c is apart: other data") && ContainsSubstring("1 of 5 is done"));
  // exp(2) - exp(1.5), and which curves are not to be compared.
  CHECK_THAT(html, ContainsSubstring("That is 2.9074 less than the next, <b>a</b>.") &&
                       ContainsSubstring("Together belong a, b, d, e (perplexity); c (perplexity).") &&
                       ContainsSubstring("is not here (diverged: no checkpoint was kept)"));
  // Somebody trains it: it is asked for, and not taken.
  const RunLock lock(folder / "d");
  CHECK(name_of(summary_of(page.runs[3]).state) == "training");
  CHECK(!is_locked(folder / "a"));
}

TEST_CASE("a page has the keys in which its runs differ, without quotes, and what each came to") {
  const TemporaryFolder folder;
  std::vector<std::string> runs;
  for (const auto& [name, slots, kind] : {std::tuple("a", 4, "adam"), std::tuple("b", 8, "adagrad")}) {
    fs::create_directories(folder / name);
    put_file(folder / name / "config.toml",
             text("[model]\nwidth = 16\nslots = ", slots, "\n[optimizer]\nkind = \"", kind, "\"\n"));
    put_file(
        folder / name / "metrics.jsonl",
        text("{\"event\":\"start\",\"step\":0,\"parameters\":", 100 * slots, "}\n",
             "{\"event\":\"valid_short\",\"step\":5,\"nll\":1.5}\n{\"event\":\"valid_short\",\"step\":9,\"nll\":2}\n"));
    runs.push_back((folder / name).string());
  }
  const nlohmann::json data = data_of(html_of(page_of(runs)));
  CHECK(data.at("settings").at("keys") == nlohmann::json{"model.slots", "optimizer.kind"});
  CHECK(data.at("settings").at("runs").at(1) == nlohmann::json{{"model.slots", "8"}, {"optimizer.kind", "adagrad"}});
  CHECK(data.at("runs").at(0).at("figures") == nlohmann::json{{"best", 1.5}, {"last", 2.0}, {"parameters", 400}});
}

TEST_CASE("units stand in the cells where they differ, what diverged has no best, and what stopped says how to go on") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  run_training(options, never());
  const auto copy = [&folder](const char* name, const std::string& log) {
    fs::copy(folder / "run", folder / name, fs::copy_options::recursive);
    put_file(folder / name / "metrics.jsonl", log);
    return (folder / name).string();
  };
  const std::string start = R"({"event":"start","step":0,"data":"x","command":["engram","train","--out","b c"]})"
                            "\n";
  const auto valid = [](double nll, const char* unit) {
    return text("{\"event\":\"train\",\"step\":5,\"nll\":", nll, ",\"", unit,
                "\":1}\n{\"event\":\"valid_short\",\"step\":5,\"nll\":", nll, "}\n");
  };
  const std::string best = copy("a", start + valid(1, "bpc")),
                    stopped = copy("b", start + valid(2, "bpc") +
                                            R"({"event":"interrupted","step":5})"
                                            "\n"),
                    diverged = copy("c", start + valid(96, "bpc") +
                                             R"({"event":"diverged","step":5,"reason":"must be that of a model"})"
                                             "\n"),
                    other = copy("d", start + valid(3, "ppl"));
  fs::remove_all(folder / "c" / "checkpoint");
  const std::string html = html_of(page_of({best, stopped, diverged, other}));
  CHECK_THAT(html, ContainsSubstring("is best of the 3 runs on the same data (a, b, c)") &&
                       ContainsSubstring("1.4427 less than the next, <b>b</b>") && ContainsSubstring("d is apart"));
  CHECK_THAT(html, ContainsSubstring("<small>bits per character</small><small>step 5</small>") &&
                       ContainsSubstring("20.09<small>perplexity</small>"));
  CHECK_THAT(html,
             ContainsSubstring("became worse than a guess") && ContainsSubstring("<q>must be that of a model</q>") &&
                 ContainsSubstring("<b>c</b> diverged: no loss of it is low enough") && !ContainsSubstring("e+4"));
  CHECK_THAT(html, ContainsSubstring(" --resume</code>") && ContainsSubstring("Paths are relative to the folder"));
}

/// The first command of a page as somebody copies it.
std::string command_on(const std::string& html, std::string_view behind) {
  const std::string_view begin = "<pre class=\"command\"><code>";
  const std::size_t at = html.find(begin, html.find(behind)) + begin.size();
  std::string command = html.substr(at, html.find("</code>", at) - at);
  for (const auto& [name, byte] :
       {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}})
    for (std::size_t place; (place = command.find(name)) != std::string::npos;)
      command.replace(place, std::string_view(name).size(), byte);
  return command;
}

TEST_CASE("commands begin in the folder that they were given in, whatever its name is") {
  const RunFolder folder;
  run_training(run_options(folder, "run"), never());
  const fs::path hostile = folder / "it's \"a\" $HOME `b` <i>\n~ -x;\\";
  fs::create_directories(hostile);
  const auto start = [&hostile](const char* event, const char* word) {
    return nlohmann::json{{"event", event},
                          {"step", 0},
                          {"steps", 9},
                          {"directory", hostile.string()},
                          {"command", {"sh", "-c", word}}}
               .dump() +
           "\n";
  };
  put_file(folder / "run" / "metrics.jsonl", start("start", "pwd") + start("resume", "pwd; echo $0") +
                                                 R"({"event":"interrupted","step":5})"
                                                 "\n");
  const std::string html = html_of(page_of({(folder / "run").string()}));
  CHECK_THAT(html, !ContainsSubstring("Paths are relative to the folder"));
  const auto said = [](const std::string& command) {
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::string all;
    for (int byte; (byte = std::fgetc(pipe)) != EOF;) all += static_cast<char>(byte);
    CHECK(::pclose(pipe) == 0);
    return all;
  };
  const std::string place = fs::canonical(hostile).string() + "\n";
  CHECK(said(command_on(html, "The same again:")) == place);
  CHECK(said(command_on(html, "To go on from")) == place + "--resume\n");
}

TEST_CASE("the runs of a sweep have short names of their own, and a checkpoint is a run without a log") {
  const TemporaryFolder folder;
  for (const char* const name : {"s/a", "s/b", "t/a"}) {
    fs::create_directories(folder / name);
    put_file(folder / name / "metrics.jsonl", "");
  }
  put_file(folder / "s" / "runs.csv", "variant,folder,test_bpc,best_test_bpc\nb,b,2.5,2.25\n");
  put_file(folder / "model.safetensors", std::string_view("\x02\0\0\0\0\0\0\0{}", 10));
  put_file(folder / "notes", "no checkpoint");
  const auto path = [&folder](const char* name) { return (folder / name).string(); };
  const PageSources found =
      find_sources({path("s"), path("t/a"), path("s/b/"), path("model.safetensors"), path("notes")});
  REQUIRE(found.runs.size() == 4);
  REQUIRE(found.problems.size() == 1);
  CHECK_THAT(found.problems[0],
             ContainsSubstring("/notes' must be a run, a sweep or a checkpoint, got something else"));
  CHECK(one_line("a: b\n  do c\n") == "a: b; do c");
  CHECK(found.runs[0].name == "s/a");
  CHECK(found.runs[1].name == "s/b");
  CHECK(found.runs[2].name == "t/a");
  CHECK(found.runs[3].folder.empty());
  CHECK(summary_of(open_run(found.runs[1])).test == 2.25);
  CHECK(!summary_of(open_run(found.runs[0])).test);
}

TEST_CASE("memories are on the page as the log and the checkpoint have them") {
  const RunFolder folder;
  run_training(memory_run(folder, "run"), never());
  const auto result = run_engram({"report", (folder / "run").string(), "--data", folder.data().string(), "--out",
                                  (folder / "p.html").string(), "--length", "5"});
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  CHECK(result.err.empty());
  const nlohmann::json data = data_of(get_file(folder / "p.html"));
  const auto valid = read_reports(folder / "run" / "metrics.jsonl", "valid_short");
  const nlohmann::json memories = data.at("runs").at(0).at("valid").at("memories");
  REQUIRE(memories.size() == valid[0].at("memory_usage").size());
  for (std::size_t i = 0; i < memories.size(); ++i) {
    const std::vector<float> usage = unpacked_floats(memories[i].at("usage").at("y"));
    REQUIRE(usage.size() == valid.size());
    for (std::size_t k = 0; k < valid.size(); ++k)
      CHECK(usage[k] == static_cast<float>(valid[k].at("memory_usage").at(i).get<double>()));
  }
  const nlohmann::json found = data.at("studies").at(0).at("memories");
  REQUIRE(!found.empty());
  CHECK(found[0].at("slots") == kMemorySlots);
  // Three layers of two heads, which read windows.
  CHECK(data.at("studies").at(0).at("attention").at("heads").size() == 6);
}

}  // namespace
}  // namespace engram::harness::page_test
