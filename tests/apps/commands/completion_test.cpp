/// What the program prints for shells and for man: every command and option is in it, and the shells themselves
/// complete with it.

#include "apps/command_line/completion.hpp"

#include <array>
#include <cstdio>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::completion_test {
namespace {

CommandDescription described() {
  CommandLine line("engram", "Engram: language models with memory", "1");
  add_all_commands(line.commands());
  return line.commands().describe();
}

std::string shell(const std::string& command) {
  std::FILE* const pipe = ::popen((command + " 2>&1 </dev/null").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  std::array<char, 4096> piece{};
  while (const std::size_t read = std::fread(piece.data(), 1, piece.size(), pipe)) said.append(piece.data(), read);
  ::pclose(pipe);
  return said;
}
bool is_installed(const std::string& program) { return !shell("command -v " + program).empty(); }

std::string script(const std::string& shell_name) {
  const ProcessResult printed = run_engram({"completion", shell_name});
  REQUIRE(printed.exit_code == 0);
  REQUIRE(printed.err == "");
  return printed.out;
}

/// A folder with the scripts, some files, and the program by its name.
struct Place {
  Place() {
    std::filesystem::create_directory(folder / "bin");
    std::filesystem::create_symlink(std::filesystem::absolute(program_of_build()), folder / "bin/engram");
    std::filesystem::create_directories(folder / "work/my data");
    put_file(folder / "work/my-run.toml", "");
    for (const char* one : {"bash", "zsh", "fish"}) put_file(folder / one, script(one));
  }
  std::string inside(const std::string& of_shell) const {
    put_file(folder / "commands", of_shell);
    return "cd '" + (folder / "work").string() + "' && PATH='" + (folder / "bin").string() + "':\"$PATH\" ";
  }
  TemporaryFolder folder;
};

/// What bash offers for each line, in a line of its own; the last word is the one that is typed.
std::vector<std::string> offered_by_bash(const Place& place, const std::vector<std::vector<std::string>>& lines) {
  std::string commands = "source '" + (place.folder / "bash").string() + "'\n";
  for (const std::vector<std::string>& words : lines) {
    commands += "COMP_WORDS=(engram";
    for (const std::string& word : words) commands += " '" + word + "'";
    commands += ") COMP_CWORD=" + std::to_string(words.size()) + "\n_engram engram\necho \"${COMPREPLY[*]}\"\n";
  }
  std::istringstream said(shell(place.inside(commands) + "bash '" + (place.folder / "commands").string() + "'"));
  std::vector<std::string> offered;
  for (std::string line; std::getline(said, line);) offered.push_back(line);
  return offered;
}

}  // namespace

TEST_CASE("completion: scripts have every command and every option") {
  const CommandDescription program = described();
  CHECK(program.commands.size() > 20);
  const std::string bash = bash_completion(program, {}), zsh = zsh_completion(program, {}),
                    fish = fish_completion(program, {});
  for (const CommandDescription& command : program.commands) {
    INFO(command.name);
    const std::size_t at = bash.find("\n    " + command.name + ")\n");
    REQUIRE(at != std::string::npos);
    const std::string arm = bash.substr(at, bash.find(";;\n    ", bash.find("esac", at)) - at);
    const std::size_t zsh_at = zsh.find("\n    " + command.name + ")\n");
    REQUIRE(zsh_at != std::string::npos);
    const std::string zsh_arm = zsh.substr(zsh_at, zsh.find("\n      ;;\n", zsh_at) - zsh_at);
    CHECK(command.options.size() >= 1);
    for (const OptionDescription& option : command.options)
      for (const std::string& name : option.names) {
        INFO(name);
        CHECK_THAT(arm, ContainsSubstring(" " + name + " ") || ContainsSubstring("'" + name + " ") ||
                            ContainsSubstring(" " + name + "'"));
        CHECK(zsh_arm.find(name) != std::string::npos);
        if (name.starts_with("--"))
          CHECK_THAT(fish, ContainsSubstring("from " + command.name + "' -l " + name.substr(2) + " ") ||
                               ContainsSubstring("from " + command.name + "' -s h -l " + name.substr(2) + " "));
      }
  }
}

TEST_CASE("completion: bash offers commands, options, words, configurations, keys and files") {
  const Place place;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"orde"}, "orderings"},
      {{"help", "sp"}, "spans"},
      {{"train", "--resize"}, "--resize-span"},
      {{"train", "--dtype", ""}, "f32 bf16 f64"},
      {{"train", "--dtype", "=", "b"}, "bf16"},
      {{"train", "--dtype", "="}, "f32 bf16 f64"},
      {{"train", "--config", "kjv-qu"}, "kjv-quick"},
      {{"train", "--config", "kjv/kjv-qu"}, "kjv/kjv-quick"},
      {{"train", "--config", "my-"}, "my-run.toml"},
      {{"train", "--data", "my"}, "my data"},
      {{"train", "--steps", ""}, ""},
      {{"train", "--set", "model.persist"}, ""},
      {{"train", "--set", "schedule.warm"}, "schedule.warmup="},
      {{"train", "--set", "schedule.warmup", "=", ""}, ""},
      {{"train", "--set", "schedule.warmup", "=", "4", "schedule.st"}, "schedule.steps="},
      {{"evaluate", "--exact", "my-"}, "my-run.toml"},
      {{"evaluate", "my-run.toml", "--spl"}, "--split"},
      {{"evaluate", "--split", "v"}, "valid"},
      {{"keys", "trans"}, "transformer_xl"},
      {{"tape", "--family", "rec"}, "recurrent"},
      {{"completion", "z"}, "zsh"},
      {{"no-command", ""}, ""},
  };
  std::vector<std::vector<std::string>> lines;
  for (const auto& [words, expected] : cases) lines.push_back(words);
  const std::vector<std::string> offered = offered_by_bash(place, lines);
  REQUIRE(offered.size() == cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CAPTURE(cases[i].first);
    CHECK(offered[i] == cases[i].second);
  }
}

TEST_CASE("completion: zsh and fish take their scripts, where they are installed") {
  const Place place;
  if (is_installed("fish")) {
    const std::string source = "source '" + (place.folder / "fish").string() + "'\n";
    const std::string commands =
        source +
        "for line in 'engram orde' 'engram train --dtype b' 'engram train --config kjv-qu' 'engram keys trans' "
        "'engram train --set schedule.warm'\n  complete -C $line | string replace -r '\\t.*' ''\nend\n";
    CHECK(shell(place.inside(commands) + "HOME='" + place.folder.path().string() + "' fish --no-config '" +
                (place.folder / "commands").string() + "'") ==
          "orderings\nbf16\nkjv-quick\ntransformer_xl\nschedule.warmup=\n");
  }
  if (is_installed("zsh")) {
    const std::string commands = "autoload -U compinit\ncompinit -D -u\nsource '" + (place.folder / "zsh").string() +
                                 "'\necho $_comps[engram]\n";
    CHECK(shell(place.inside(commands) + "zsh -f '" + (place.folder / "commands").string() + "'") == "_engram\n");
  }
}

TEST_CASE("completion: what is offered follows from what the value is called") {
  const auto offer = [](const char* value) { return offer_of({.value = value}); };
  CHECK(offer("FILE...") == Offer::files);
  CHECK(offer("[FOLDER]") == Offer::folders);
  CHECK(offer("KEY=VALUE...") == Offer::keys);
  CHECK(offer("N,N,...") == Offer::nothing);
  CHECK(offer("CONFIG") == Offer::configs);
  CHECK(offer_of({.value = "FILE", .offered = {"a"}}) == Offer::words);
  CHECK(short_meaning("a b; c") == "a b");
  CHECK(short_meaning("override the rate of all: a number") == "override the rate of all");
  CHECK(short_meaning("char: what it is: any [any]") == "char: what it is");
  CHECK(short_meaning(std::string(30, 'a') + " " + std::string(40, 'b')) == std::string(30, 'a'));
}

}  // namespace engram::harness::completion_test
