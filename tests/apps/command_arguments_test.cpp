/// What a command line takes: numbers as they are written, options by their names, values that are no files.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "apps/commands/command.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/commands/version.hpp"
#include "core/error.hpp"
#include "tests/apps/command_results.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::command_arguments_test {
namespace {

/// A program of one command, `do`, and what it was given.
struct SmallProgram {
  std::int64_t count = 7;
  std::uint64_t seed = 7;
  int threads = 7;
  double share = 0.5;
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
    command->add_option("--share", share, "")->within(0, 1);
    command->add_option("--sizes", sizes, "")->delimiter(',');
    command->add_option("--set", settings, "")->allow_extra_args(false)->value_if(is_setting);
    command->add_option("--mode", mode, "")
        ->expected(0, 1)
        ->value_if([](const std::string& one) { return one == "fast" || one == "slow"; }, "fast");
    command->callback([] {});
    Arguments all{"do"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return message_of<UsageError>([&] { line.run(all); });
  }
};

}  // namespace

TEST_CASE("command line: integers that the program cannot hold are refused, not taken as others") {
  SmallProgram program;
  const auto refused = [&](const char* option, const char* value, const std::string& range) {
    INFO(option << " " << value);
    CHECK_THAT(program.run({"f", option, value}), ContainsSubstring(option) &&
                                                      ContainsSubstring("must be an integer from " + range) &&
                                                      ContainsSubstring(std::string("got '") + value + "'"));
  };
  const std::string of_count = "-9223372036854775808 to 9223372036854775807", of_seed = "0 to 18446744073709551615";
  refused("--count", "99999999999999999999", of_count);
  refused("--count", "-9223372036854775809", of_count);
  refused("--seed", "-1", of_seed);
  refused("--seed", "18446744073709551616", of_seed);
  refused("--threads", "2147483648", "-2147483648 to 2147483647");
  refused("--sizes", "9223372036854775808", of_count);
  for (const char* wrong : {"0x10", "1e3", "1.5", "few", "--5", "+-5", "5 ", " 5", "+", "5,"})
    refused("--count", wrong, of_count);
  CHECK_THAT(program.run({"f", "--threads", "0"}), ContainsSubstring("must be a number above 0, got '0'"));

  CHECK(program.run({"f", "--count", "-9223372036854775808", "--seed", "18446744073709551615", "--sizes", "3,04"})
            .empty());
  CHECK(program.count == std::numeric_limits<std::int64_t>::min());
  CHECK(program.seed == std::numeric_limits<std::uint64_t>::max());
  CHECK(program.sizes == std::vector<std::int64_t>{3, 4});
  // Ten, and not the octal eight.
  CHECK(program.run({"f", "--count", "010", "--threads", "+3"}).empty());
  CHECK(program.count == 10);
  CHECK(program.threads == 3);
  for (const char* wrong : {"1.01", "nan", "-0.5", "x"})
    CHECK_THAT(program.run({"f", "--share", wrong}), ContainsSubstring("must be a number from 0 to 1, got '"));
}

TEST_CASE("command line: an unknown option is named, with the nearest, and not its value") {
  SmallProgram program;
  CHECK_THAT(program.run({"f", "--cuont", "5"}),
             ContainsSubstring("there is no option '--cuont'; the nearest is --count\n  small do --help"));
  CHECK_THAT(program.run({"--thread=5", "f"}), ContainsSubstring("no option '--thread'; the nearest is --threads"));
  // Its value was taken for the file, and the file was left over.
  CHECK_THAT(program.run({"--sead", "5", "f"}), ContainsSubstring("no option '--sead'; the nearest is --seed"));
  // What is missing may have been misspelt.
  CHECK_THAT(program.run({"--fiel"}), ContainsSubstring("no option '--fiel'"));
  CHECK_THAT(program.run({}), ContainsSubstring("file is required"));
  CHECK_THAT(program.run({"f", "g", "-3"}), ContainsSubstring("got 'g', '-3' beside them"));
}

TEST_CASE("command line: only what can be a value of an option is taken as one") {
  SmallProgram program;
  CHECK(program.run({"--set", "a.b=1", "c=2", "f"}).empty());
  CHECK(program.settings == std::vector<std::string>{"a.b=1", "c=2"});
  CHECK(program.file == "f");
  CHECK(program.run({"--set", "a=1", "f", "--set", "b=2"}).empty());
  CHECK(program.settings == std::vector<std::string>{"a=1", "b=2"});
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
}

TEST_CASE("command line: the messages of --dtype name what the command takes") {
  CHECK(dtype_option("x", "f64") == DType::f64);
  CHECK(dtype_option("x", "bf16", true) == DType::bf16);
  CHECK_THROWS_WITH(dtype_option("x", "bf16"), "x: --dtype must be f32 or f64, got 'bf16'");
  for (const char* wrong : {"f16", "i32", ""})
    CHECK_THROWS_WITH(dtype_option("x", wrong, true), ContainsSubstring("x: --dtype must be f32, bf16 or f64, got '"));
}

TEST_CASE("command line: the version is the project's, and help has more than one name") {
  const ProcessResult version = run_engram({"--version"});
  CHECK(version.exit_code == 0);
  CHECK(version.out == "engram " + program_version() + "\n");
  CHECK_THAT(get_file(std::string(ENGRAM_SOURCE_DIR) + "/CMakeLists.txt"),
             ContainsSubstring("project(engram VERSION " + program_version() + " "));
  CHECK(run_engram({"help"}).out == run_engram({"--help"}).out);
  const ProcessResult command = run_engram({"help", "train"});
  CHECK(command.exit_code == 0);
  CHECK(command.out == run_engram({"train", "--help"}).out);
  CHECK_THAT(error_of({"help", "trian"}, 2), ContainsSubstring("nearest is train"));
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
             ContainsSubstring("--seed: must be an integer from 0 to 18446744073709551615, got '-1'"));
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
}

}  // namespace engram::harness::command_arguments_test
