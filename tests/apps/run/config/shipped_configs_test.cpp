/// Configurations by name: those of apps/configs, which lie beside the programs of a build folder as beside an
/// installed one.

#include "apps/run/config/shipped_configs.hpp"

#include <filesystem>
#include <map>
#include <string>

#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::shipped_configs_test {
namespace {

namespace fs = std::filesystem;

std::size_t configs_of_the_tree() {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(ENGRAM_SOURCE_DIR) / "apps/configs"))
    count += entry.path().extension() == ".toml" ? 1 : 0;
  return count;
}

}  // namespace

TEST_CASE("shipped configs: all are there, no two end alike, and each says what it is") {
  const std::vector<ShippedConfig> all = shipped_configs();
  CHECK(all.size() == configs_of_the_tree());
  std::map<std::string, std::string> last_parts;
  for (const ShippedConfig& one : all) {
    INFO(one.name);
    const std::string last = fs::path(one.name).filename().string();
    CHECK(last_parts.emplace(last, one.name).second);
    CHECK(find_config(last) == one.file);
    CHECK(find_config(one.name) == one.file);
    CHECK(find_config(one.name + ".toml") == one.file);
    CHECK(shipped_config("apps/configs/" + one.name + ".toml") == one.file);
    CHECK(opening_comment(get_file(one.file)).size() > 20);
  }
}

TEST_CASE("shipped configs: a file comes first, and what is neither is named with the nearest") {
  const TemporaryFolder folder;
  const fs::path before = fs::current_path();
  fs::current_path(folder.path());
  put_file("kjv-quick", "here");
  CHECK(find_config("kjv-quick") == "kjv-quick");
  CHECK(find_config("./kjv-quick") == "./kjv-quick");
  CHECK(find_config("/nowhere/kjv-quick") == "/nowhere/kjv-quick");
  const std::string near = message_of<FileError>([] { find_config("kjv-quik"); });
  const std::string far = message_of<FileError>([] { find_config("nothing-like-it"); });
  fs::current_path(before);
  CHECK(near ==
        "config: 'kjv-quik' must be a file or one of engram configs, got neither; the nearest is kjv/kjv-quick");
  CHECK_THAT(far, ContainsSubstring("got neither; those lie in '") && EndsWith("/share/engram/configs'"));
}

TEST_CASE("shipped configs: opening comments") {
  CHECK(opening_comment("# a\n#b\n# \n#  c\n\n# d\n") == "a b c");
  CHECK(opening_comment("[model]\n# a\n") == "");
  CHECK(opening_comment("# a") == "a");
}

TEST_CASE("shipped configs: the program lists and prints them, from any folder") {
  const ProcessResult names = run_engram({"configs", "--names", "--filter", "bench/"});
  CHECK(names.exit_code == 0);
  CHECK_THAT(names.out, StartsWith("bench/bench-a\nbench/bench-b\n"));
  const ProcessResult printed = run_engram({"configs", "kjv-quick"});
  CHECK(printed.out == get_file(fs::path(ENGRAM_SOURCE_DIR) / "apps/configs/kjv/kjv-quick.toml"));
  CHECK_THAT(run_engram({"configs"}).out,
             ContainsSubstring("\nkjv:\n") && ContainsSubstring("\n  kjv-quick\n      A small"));
  CHECK_THAT(run_engram({"configs", "--json"}).out, StartsWith("{\"configs\":[{\"about\":\"Sukhbaatar"));
  const ProcessResult refused = run_engram({"configs", "--filter", "no such"});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("configs: --filter must be a part of a name, got 'no such'"));
  const ProcessResult counted = run_engram({"count", "--config", "kjv-quick", "--vocab", "100"});
  CHECK(counted.exit_code == 0);
  CHECK_THAT(counted.out, StartsWith("kjv-quick ("));
}

}  // namespace engram::harness::shipped_configs_test
