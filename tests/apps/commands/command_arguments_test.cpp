/// What a command line takes: numbers as they are written, options by their names, values that are no files.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::command_arguments_test {
namespace {

/// A program of one command, `do`, and what it was given.
struct SmallProgram {
  std::int64_t count = 7;
  std::uint64_t seed = 7;
  int threads = 7, length = 7, cores = 7;
  double share = 0.5, rate = 0.5;
  std::vector<std::int64_t> sizes;
  std::vector<std::string> settings;
  std::string mode, file;

  /// The message of what is refused; empty when nothing is.
  std::string run(const Arguments& arguments) {
    *this = {};
    CommandLine line("small", "", "1.2");
    Command* command = line.commands().add_subcommand("do", "something");
    command->add_option("file", file, "of the command")->required();
    command->add_option("--count", count, "");
    command->add_option("--seed", seed, "");
    command->add_option("--threads", threads, "")->positive();
    command->add_option("--length", length, "")->non_negative();
    command->add_option("--cores", cores, "")->within(1, 64);
    command->add_option("--share", share, "")->within(0, 1);
    command->add_option("--rate", rate, "")->positive();
    command->add_option("--sizes", sizes, "")->delimiter(',');
    command->add_key_settings(settings, "");
    command->add_option("--mode", mode, "")->one_of_or({"fast", "slow"}, "fast");
    command->callback([] {});
    Arguments all{"do"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return message_of<UsageError>([&] { line.run(all); });
  }
};

}  // namespace

TEST_CASE("command line: integers that the program cannot hold are refused, not taken as others") {
  SmallProgram program;
  const auto refused = [&](const char* option, const char* value, const std::string& rule) {
    INFO(option << " " << value);
    CHECK_THAT(program.run({"f", option, value}),
               StartsWith(std::string(option) + ": must be an integer" + rule + ", got '" + value + "'\n"));
  };
  const std::string of_count = " from -9223372036854775808 to 9223372036854775807";
  refused("--count", "99999999999999999999", of_count);
  refused("--count", "-9223372036854775809", of_count);
  refused("--seed", "18446744073709551616", " from 0 to 18446744073709551615");
  refused("--sizes", "9223372036854775808", of_count);
  for (const char* wrong : {"0x10", "1e3", "1.5", "few", "--5", "+-5", "5 ", " 5", "+", "5,"})
    refused("--count", wrong, "");

  CHECK(program.run({"f", "--count", "-9223372036854775808", "--seed", "18446744073709551615", "--sizes", "3,04"})
            .empty());
  CHECK(program.count == std::numeric_limits<std::int64_t>::min());
  CHECK(program.seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(program.sizes == std::vector<std::int64_t>{3, 4});
  // Ten, and not the octal eight.
  CHECK(program.run({"f", "--count", "010", "--threads", "+3"}).empty());
  CHECK(program.count == 10);
  CHECK(program.threads == 3);
}

TEST_CASE("command line: a number out of range is told the option's own range, in one message") {
  SmallProgram program;
  const std::string rest = "\n  small do --help lists the options";
  const auto refused = [&](const char* option, const char* value, const std::string& rule) {
    CHECK(program.run({"f", option, value}) ==
          std::string(option) + ": must be " + rule + ", got '" + value + "'" + rest);
  };
  refused("--seed", "-1", "an integer of at least 0");
  refused("--length", "-1", "an integer of at least 0");
  refused("--length", "1e3", "an integer of at least 0");
  refused("--length", "2147483648", "an integer from 0 to 2147483647");
  for (const char* wrong : {"0", "-4", "1e3"}) refused("--threads", wrong, "an integer of at least 1");
  for (const char* wrong : {"0", "65", "99999999999", "many"}) refused("--cores", wrong, "an integer from 1 to 64");
  for (const char* wrong : {"1.01", "nan", "-0.5", "x", "1e999"}) refused("--share", wrong, "a number from 0 to 1");
  for (const char* wrong : {"0", "inf", "0x1"}) refused("--rate", wrong, "a number above 0");
  CHECK(
      program.run({"f", "--cores", "64", "--threads", "1", "--length", "0", "--share", "1", "--rate", "1e-9"}).empty());
  CHECK(program.rate == 1e-9);
}

TEST_CASE("command line: an unknown option is named, with the nearest if it is near, and not its value") {
  SmallProgram program;
  CHECK_THAT(program.run({"f", "--cuont", "5"}),
             StartsWith("there is no option '--cuont'; the nearest is --count\n  small do --help"));
  CHECK_THAT(program.run({"--thread=5", "f"}), ContainsSubstring("no option '--thread'; the nearest is --threads"));
  CHECK_THAT(program.run({"f", "-share", "3"}), ContainsSubstring("no option '-share'; the nearest is --share\n"));
  // Its value was taken for the file, and the file was left over.
  CHECK_THAT(program.run({"--sead", "5", "f"}), ContainsSubstring("no option '--sead'; the nearest is --seed"));
  // As far from --mode as from --share.
  CHECK_THAT(program.run({"f", "--wide", "5"}), StartsWith("there is no option '--wide'\n  small do --help"));
  // What is missing may have been misspelt, or not.
  CHECK_THAT(program.run({"--fiel"}),
             StartsWith("there is no option '--fiel'\n  FILE must be given\n  small do --help"));
  CHECK_THAT(program.run({"--cuont", "--sead"}),
             StartsWith("there is no option '--cuont'; the nearest is --count\n"
                        "  there is no option '--sead'; the nearest is --seed\n  FILE must be given\n  small"));
  CHECK_THAT(program.run({}), StartsWith("FILE must be given\n"));
  CHECK_THAT(program.run({"f", "g", "-3"}), ContainsSubstring("got 'g', '-3' beside them"));
}

TEST_CASE("command line: a key of the configuration as an option is told how it is given") {
  SmallProgram program;
  const std::string given = "'; a key of the config is given as --set ";
  CHECK_THAT(program.run({"f", "--warmup", "5"}),
             StartsWith("there is no option '--warmup" + given + "schedule.warmup=5\n  small"));
  CHECK_THAT(program.run({"f", "--model.width=8"}), ContainsSubstring(given + "model.width=8\n"));
  CHECK_THAT(program.run({"f", "--weight-decay"}), ContainsSubstring(given + "optimizer.weight_decay=VALUE\n"));
  CHECK_THAT(program.run({"f", "--heads", "2"}),
             ContainsSubstring(given + "model.heads=2 or --set product_key.heads=2\n"));
  CHECK_THAT(program.run({"f", "--seeds=2"}), ContainsSubstring("no option '--seeds'; the nearest is --seed\n"));
  CHECK_THAT(program.run({"f", "--batch", "2"}), ContainsSubstring(given + "training.batch=2\n"));
  // Both may be meant.
  CHECK_THAT(program.run({"f", "-seed", "3"}),
             ContainsSubstring("the nearest is --seed, and a key of the config is given as --set training.seed=3\n"));
  // Not of commands that take no keys.
  CHECK_THAT(error_of({"evaluate", "r", "--data", "d", "--warmup", "5"}, 2),
             StartsWith("engram: error: there is no option '--warmup'\n  engram evaluate --help"));
  CHECK_THAT(error_of({"train", "--rate", "0.1"}, 2),
             StartsWith("engram: error: there is no option '--rate" + given +
                        "schedule.rate=0.1\n  --data FOLDER and --out FOLDER must be given\n  engram train --help"));
}

TEST_CASE("command line: options without a value, or with two, are named") {
  SmallProgram program;
  CHECK_THAT(program.run({"f", "--count"}), StartsWith("--count must have a value, N, got none\n"));
  CHECK_THAT(program.run({"f", "--count", "1", "--count", "2"}),
             StartsWith("--count must be given once, got it 2 times\n"));
}

TEST_CASE("command line: only what can be a value of an option is taken as one") {
  SmallProgram program;
  CHECK(program.run({"--set", "a.b=1", "c=2", "f"}).empty());
  CHECK(program.settings == std::vector<std::string>{"a.b=1", "c=2"});
  CHECK(program.file == "f");
  CHECK(program.run({"--set", "a=1", "f", "--set", "b=2"}).empty());
  CHECK(program.settings == std::vector<std::string>{"a=1", "b=2"});
  CHECK(is_setting("a-b=1"));
  CHECK_FALSE(is_setting("--a=1"));
  CHECK_FALSE(is_setting("./a=1"));
  CHECK_FALSE(is_setting("runs/a=1"));
  CHECK_FALSE(is_setting("=1"));

  for (const auto& [arguments, mode] : std::vector<std::pair<Arguments, std::string>>{{{"--mode", "f"}, "fast"},
                                                                                      {{"f", "--mode"}, "fast"},
                                                                                      {{"--mode", "slow", "f"}, "slow"},
                                                                                      {{"f", "--mode=slow"}, "slow"}}) {
    CAPTURE(arguments);
    CHECK(program.run(arguments).empty());
    CHECK(program.mode == mode);
    CHECK(program.file == "f");
  }
  CHECK_THAT(program.run({"f", "--mode", "high"}), StartsWith("--mode must be fast or slow, got 'high'\n"));
  CHECK_THAT(program.run({"f", "--mode=high"}), StartsWith("--mode: must be fast or slow, got 'high'\n"));
  CHECK_THAT(program.run({"--mode", "high", "f"}),
             ContainsSubstring("got 'f' beside them\n  what follows --mode must be fast or slow to be its value\n"));
}

TEST_CASE("command line: the messages of --dtype name what the command takes") {
  CHECK(dtype_option("x", "f64") == DType::f64);
  CHECK(dtype_option("x", "bf16", true) == DType::bf16);
  CHECK_THROWS_WITH(dtype_option("x", "bf16"), "x: --dtype must be f32 or f64, got 'bf16'");
  for (const char* wrong : {"f16", "i32", ""})
    CHECK_THROWS_WITH(dtype_option("x", wrong, true), ContainsSubstring("x: --dtype must be f32, bf16 or f64, got '"));
}

TEST_CASE("command line: a model's products are rounded where --dtype says so, or says nothing on a card") {
  const auto rounds = [](const char* name, DeviceKind device) {
    return products_option(name, device) == ProductPrecision::bf16;
  };
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda, DeviceKind::simulated}) {
    CHECK(rounds("bf16", device));
    CHECK_FALSE(rounds("f32", device));
    CHECK_FALSE(rounds("f64", device));
    CHECK(rounds("", device) == (device == DeviceKind::cuda));
  }
}

TEST_CASE("command line: the version is the project's, and help has more than one name") {
  const ProcessResult version = run_engram({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out == "engram " + version_text() + "\n");
  CHECK_THAT(version_text(), ContainsSubstring("\ncommit    ") && ContainsSubstring("\ncompiler  ") &&
                                 ContainsSubstring("\nbuild     ") && ContainsSubstring(", OpenMP ") &&
                                 ContainsSubstring("\ndevices   cpu"));
  CHECK_THAT(get_file(std::string(ENGRAM_SOURCE_DIR) + "/CMakeLists.txt"),
             ContainsSubstring("project(engram VERSION " + std::string(build_facts().version) + " "));
  CHECK(run_engram({"help"}).out == run_engram({"--help"}).out);
  const ProcessResult command = run_engram({"help", "train"});
  CHECK(command.exit_code == 0);
  CHECK(command.out == run_engram({"train", "--help"}).out);
  CHECK_THAT(error_of({"help", "trian"}, 2), ContainsSubstring("nearest is train"));
  CHECK_THAT(error_of({"help", "train", "it"}, 2), ContainsSubstring("one command at most, got 'train' and 'it'"));
}

TEST_CASE("command line: the rule of characters has a name of its own, and its old one is understood") {
  const TemporaryFolder folder;
  const std::string letters = put_file(folder / "t", small_text(500)).string();
  const auto prepared = [&](const char* option, const char* out) {
    const ProcessResult result = run_engram(
        {"prepare", "--text", letters, option, "any", "--vocabulary-from", "all", "--out", (folder / out).string()});
    CHECK(result.exit_code == 0);
    return result.err;
  };
  CHECK(prepared("--characters", "new").find("--rule") == std::string::npos);
  CHECK_THAT(prepared("--rule", "old"), ContainsSubstring("--rule is called --characters now (--characters "
                                                          "any); --rules is another option"));
  CHECK(get_file(folder / "new/train.tokens") == get_file(folder / "old/train.tokens"));
  const std::string out = (folder / "none").string();
  CHECK_THAT(error_of({"prepare", "--text", letters, "--characters", "ptb", "--out", out}, 2),
             ContainsSubstring("--characters must be enwik8, text8 or any, got 'ptb'\n  --rules names"));
  CHECK_THAT(error_of({"prepare", "--text", letters, "--rule", "any", "--characters", "any", "--out", out}, 2),
             ContainsSubstring("--rule is the old name of --characters, got both"));
}

TEST_CASE("command line: help names all families and sections, and where the keys are") {
  const std::string keys = run_engram({"keys", "--help"}).out;
  CHECK_THAT(keys, ContainsSubstring("recurrent") && ContainsSubstring("[product_key]"));
  CHECK_THAT(run_engram({"sweep", "--help"}).out, ContainsSubstring("engram keys lists the keys"));
}

TEST_CASE("command line: what commands are given is told apart from what they lack") {
  const TemporaryFolder folder;
  const std::string out = (folder / "out").string(), config = (folder / "c.toml").string();
  CHECK_THAT(error_of({"prepare", "--text", "t", "--min-count", "99999999999999999999", "--out", out}, 2),
             ContainsSubstring("--min-count: must be an integer from"));
  CHECK_THAT(error_of({"prepare", "--kind", "word", "--articles", "t", "--seed", "-1", "--out", out}, 2),
             ContainsSubstring("--seed: must be an integer of at least 0, got '-1'"));
  CHECK_THAT(error_of({"generate", "run", "--threads", "99999999999"}, 2),
             ContainsSubstring("--threads: must be an integer from 0 to 4096, got '99999999999'"));
  CHECK_THAT(error_of({"train", "--steps", "1e3"}, 2),
             ContainsSubstring("--steps: must be an integer from 1 to 4294967295, got '1e3'"));
  CHECK_THAT(error_of({"prepare", "--text", "", "--out", out}, 2),
             ContainsSubstring("--text must name a file, got an empty name"));
  CHECK_THAT(error_of({"orderings", folder.path().string(), "--claim", "a: valid: b > c"}, 1),
             ContainsSubstring("must be the folder of a sweep, got one without sweep.csv"));
  CHECK_THAT(error_of({"orderings", out, "--claim", "a: valid: b > c"}, 1), ContainsSubstring("nothing of this name"));
  put_file(config,
           "[model]\nlayers = 1\nwidth = 16\nheads = 2\nslots = 5\nmax_span = 48\n[schedule]\nrate = 1\n"
           "steps = 9\n");
  // At once: on stdout there would be the machine's limits.
  CHECK_THAT(error_of({"bench", "--config", config}, 2), ContainsSubstring("'c' takes its vocabulary from the data"));
  CHECK_THAT(error_of({"bench", "--cost", "--groups", "--kernel", "softmax_forward"}, 2),
             ContainsSubstring("bench: --groups must be of all kernels, got --kernel softmax_forward"));
}

}  // namespace engram::harness::command_arguments_test
