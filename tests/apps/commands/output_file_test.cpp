/// Results replace only what is theirs, and whether they can be written is known before the work.

#include "apps/commands/output_file.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/run/folder/run_folder.hpp"
#include "apps/run/weights/mapped_run.hpp"
#include "core/error.hpp"
#include "core/files/safetensors.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/apps/studies/sweeps/sweep_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::output_file_test {
namespace {

namespace fs = std::filesystem;

/// A data set and a run, made once.
struct Place : RunFolder {
  Place() { run_training(run_options(*this, "run"), never()); }
  std::string path(std::string_view name) const { return (*this / name).string(); }
  std::string checkpoint() const { return checkpoint_path(*this / "run", CheckpointKind::newest).string(); }
};
const Place& place() {
  static const Place made;
  return made;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("output files: a new path, an empty file or one that begins alike may be written, and nothing is left") {
  const TemporaryFolder folder;
  const std::string file = (folder / "a.csv").string();
  const auto refusal = [&] {
    return message_of<UsageError>([&] { check_output_file("x: --csv", file, {"a,b\n", "step,"}); });
  };
  check_output_file("x: --csv", "", {});
  CHECK(refusal().empty());
  CHECK(fs::is_empty(folder.path()));
  for (const char* own : {"", "a,b\n", "a,b\n1,2\n", "step,c\n"}) {
    put_file(file, own);
    CHECK(refusal().empty());
    CHECK(get_file(file) == own);
  }
  for (const char* foreign : {"a", "a,bc\n", "my text\n", "\n"}) {
    put_file(file, foreign);
    CHECK_THAT(refusal(), ContainsSubstring("x: --csv must name a new file or one of the kind that it writes") &&
                              ContainsSubstring(file));
    CHECK(get_file(file) == foreign);
  }
  CHECK_THAT(message_of<FileError>([&] { check_output_file("x: --csv", (folder / "no/b.csv").string(), {}); }),
             ContainsSubstring("does not exist; create it first"));
  CHECK_THROWS_AS(check_output_file("x: --csv", folder.path().string(), {}), FileError);
  CHECK_THROWS_AS(check_output_file("x: --csv", "/dev/null", {}), FileError);
  CHECK_THAT(message_of<UsageError>([] { check_output_file("x: --csv", "-", {}); }),
             ContainsSubstring("x: --csv must name a file, got '-'"));
}

TEST_CASE("output files: weights are written over no checkpoint of a run") {
  const TemporaryFolder folder;
  const std::string file = (folder / "w.safetensors").string();
  const float number = 1;
  const auto put = [&](const Metadata& metadata) {
    write_safetensors(file, std::vector{host_tensor("weight", DType::f32, {1}, &number)}, metadata);
  };
  const auto passes = [&](bool own) {
    return message_of<UsageError>([&] { check_output_weights("x: --out", file, own); }).empty();
  };
  CHECK((passes(true) && passes(false)));
  put({{"format", "pt"}});
  CHECK((passes(true) && passes(false)));
  put({{"engram.format", "1"}});
  CHECK(passes(true));
  CHECK_FALSE(passes(false));
  for (const char* of_run : {"engram.run", "engram.data"}) {
    put({{"engram.format", "1"}, {of_run, "x"}});
    CHECK_FALSE(passes(true));
    CHECK_FALSE(passes(false));
  }
  put_file(file, "no weights");
  CHECK_FALSE(passes(true));
}

TEST_CASE("output files: commands refuse before they begin, and leave what is there") {
  const Place& at = place();
  const std::string text = put_file(at / "my.txt", "a text of mine\n").string(), checkpoint = at.checkpoint();
  const std::string before = get_file(checkpoint);
  const std::string run = at.path("run"), data = at.data().string();
  const std::vector<Arguments> commands{{"evaluate", run, "--data", data, "--per-token"},
                                        {"spans", run, "--csv"},
                                        {"spans", run, "--svg"},
                                        {"attention", run, "--text", "an age", "--csv"},
                                        {"attention", run, "--text", "an age", "--svg"},
                                        {"export", "--to", "transfo-xl", run, "--out"},
                                        {"bench", "--svg"},
                                        {"bench", "--against-vanilla", "--svg"}};
  for (const Arguments& command : commands)
    for (const std::string& path : {text, checkpoint}) {
      CAPTURE(command, path);
      Arguments all = command;
      all.push_back(path);
      CHECK_THAT(error_of(all, 2), ContainsSubstring("one of the kind that it writes, got '" + path + "'"));
    }
  // What they read is not there either, which they would find out later.
  const std::string none = at.path("none");
  const std::vector<Arguments> early{{"evaluate", none, "--data", none, "--per-token"},
                                     {"lengths", none, "--data", none, "--csv"},
                                     {"lengths", none, "--data", none, "--svg"},
                                     {"recl", none, none, "--data", none, "--csv"},
                                     {"memory", none, "--data", none, "--csv"},
                                     {"memory", none, "--data", none, "--svg"},
                                     {"cbt", none, "--data", none, "--questions", none, "--csv"},
                                     {"gradients", none, "--csv"},
                                     {"attention", none, "--text", "a", "--mean-csv"},
                                     {"attention", none, "--text", "a", "--mean-svg"}};
  for (const Arguments& command : early) {
    CAPTURE(command);
    Arguments all = command;
    all.push_back(at.path("missing/file"));
    CHECK_THAT(error_of(all, 1), ContainsSubstring("write_file: ") && ContainsSubstring("missing/file") &&
                                     ContainsSubstring("create it first"));
  }
  CHECK(get_file(text) == "a text of mine\n");
  CHECK(get_file(checkpoint) == before);
}

TEST_CASE("output files: a drawing is not named as what it is not") {
  const Place& at = place();
  CHECK_THAT(error_of({"lengths", at.path("none"), "--data", at.path("none"), "--svg", at.path("curve.png")}, 2),
             ContainsSubstring("must name a file that ends in .svg") && ContainsSubstring("curve.png"));
  CHECK_FALSE(std::filesystem::exists(at.path("curve.png")));
}

TEST_CASE("output folders: a run begins only in a folder that has nothing else in it") {
  const Place& at = place();
  TrainingRunOptions options = run_options(at, "fresh");
  options.out = "";
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("--out must name the run's folder"));
  options = run_options(at, "fresh");
  for (const bool resume : {false, true}) {
    options.out = at.data();
    options.resume = resume;
    const std::vector<std::string> before = names_in(at.data());
    CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
               ContainsSubstring(resume ? "--resume needs the checkpoint"
                                        : "--out must be a new or an empty folder, got '" + at.data().string() +
                                              "' with 'data.json' in it"));
    CHECK(names_in(at.data()) == before);  // not even a lock
  }
  // What is hidden is in nobody's way; and what a start that was killed early leaves.
  options.resume = false;
  options.out = at / "killed";
  fs::create_directories(options.out / "checkpoint");
  for (const char* name : {".gitkeep", "lock", "config.toml", "config.toml.partial", "metrics.jsonl"})
    put_file(options.out / name, "");
  CHECK(run_training(options, never()).step == 24);
}

TEST_CASE("output folders: map and sweep have the same rule") {
  const RunFolder folder;
  run_training(memory_run(folder, "memory", {"schedule.steps=1"}), never());
  const std::vector<std::string> before = names_in(folder.data());
  CHECK_THAT(message_of<UsageError>([&] { map_run(folder / "memory", CheckpointKind::newest, folder.data()); }),
             ContainsSubstring("map: --out must be a new or an empty folder") && ContainsSubstring("'data.json'"));
  CHECK(names_in(folder.data()) == before);

  SweepOptions options = bench().options("kept", {"model.slots=3"});
  options.out = bench().data();
  CHECK_THAT(message_of<UsageError>([&] { prepared(options); }),
             ContainsSubstring("sweep: --out must be a new or an empty folder, or that of a sweep") &&
                 ContainsSubstring("'data.json'"));
  options.out = bench() / "kept";
  fs::create_directories(options.out);
  put_file(options.out / ".gitkeep", "");
  CHECK(prepared(options).size() == 1);
  run_all(options);
  options.out = bench() / "kept/slots-3";
  CHECK_THAT(message_of<UsageError>([&] { prepared(options); }), ContainsSubstring("got a run's"));
  // A sweep goes on, with other variants too, and with notes beside its tables; also where it was stopped before them.
  options = bench().options("kept", {"model.slots=4"});
  put_file(options.out / "notes.txt", "mine");
  CHECK(prepared(options).size() == 1);
  fs::remove(options.out / "notes.txt");
  fs::remove(options.out / "sweep.csv");
  fs::remove(options.out / "runs.csv");
  CHECK(prepared(options).size() == 1);
}

}  // namespace engram::harness::output_file_test
