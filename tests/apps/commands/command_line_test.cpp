/// The program as users and scripts see it: exit codes, what is on stdout, and the texts of errors.

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/files/json.hpp"
#include "core/files/safetensors.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/report/xml_document.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::command_line_test {
namespace {

namespace fs = std::filesystem;

const std::string kConfigs = std::string(ENGRAM_SOURCE_DIR) + "/apps/configs/";

/// Data and a finished run of a few steps, made once by the program itself.
struct Workplace {
  Workplace() {
    put_file(folder / "config.toml", small_config());
    const ProcessResult trained =
        run_engram({"train", "--config", config(), "--data", data(), "--out", run(), "--steps", "3"});
    if (trained.exit_code != 0) throw std::runtime_error(trained.err);
  }
  std::string path(std::string_view name) const { return (folder / name).string(); }
  std::string data() const { return folder.data().string(); }
  std::string config() const { return path("config.toml"); }
  std::string run() const { return path("run"); }
  std::string checkpoint() const { return run() + "/checkpoint/model.safetensors"; }
  RunFolder folder;
};
const Workplace& workplace() {
  static const Workplace made;
  return made;
}

/// Fails with one error message, which holds all the parts, and nothing on stdout.
void check_error(const Arguments& arguments, int exit_code, const std::vector<std::string>& parts) {
  const ProcessResult result = run_engram(arguments);
  std::string line;
  for (const std::string& argument : arguments) line += argument + " ";
  INFO(line << "\n" << result.err);
  CHECK(result.exit_code == exit_code);
  CHECK(result.out.empty());
  const std::size_t first = result.err.find("engram: error: ");
  CHECK(first != std::string::npos);
  CHECK(result.err.find("engram: error: ", first + 1) == std::string::npos);
  CHECK(result.err.back() == '\n');
  for (const std::string& part : parts) CHECK_THAT(result.err, ContainsSubstring(part));
}

const Arguments kCommands{"prepare",   "train",     "evaluate",  "generate", "count",   "spans", "sweep",
                          "bench",     "keys",      "import",    "export",   "lengths", "recl",  "memory",
                          "attention", "gradients", "orderings", "map",      "figure"};

}  // namespace

TEST_CASE("command line: help names every command, and every command has a short one") {
  const ProcessResult help = run_engram({"--help"});
  CHECK(help.exit_code == 0);
  CHECK(help.err.empty());
  for (const std::string& command : kCommands) {
    INFO(command);
    CHECK_THAT(help.out, ContainsSubstring("  " + command + " "));
    const ProcessResult own = run_engram({command, "--help"});
    CHECK(own.exit_code == 0);
    CHECK(own.err.empty());
    CHECK_THAT(own.out, ContainsSubstring("engram " + command));
    CHECK(own.out.size() > 200);
    CHECK(own.out.size() < 6000);
  }
}

TEST_CASE("command line: wrong usage is exit code 2") {
  const std::string config = workplace().config();
  check_error({}, 2, {"prepare", "train", "bench", "--help"});
  check_error({"trian"}, 2, {"'trian'", "nearest is train"});
  CHECK_THAT(run_engram({"quit"}).err, ContainsSubstring("no command 'quit'\n"));
  check_error({"count"}, 2, {"--config", "engram count --help"});
  check_error({"count", "--config", config, "--vocabb", "3"}, 2, {"--vocabb", "engram count --help"});
  check_error({"bench", "--steps", "0"}, 2, {"--steps: must be an integer of at least 1, got '0'"});
  check_error({"bench", "--steps", "few"}, 2, {"--steps", "an integer of at least 1", "got 'few'"});
  check_error({"count", "--config", config}, 2, {"--vocab"});
  check_error({"count", "--config", config, "--vocab", "0"}, 2, {"--vocab"});
  check_error({"count", "--config", config, "--vocab", "x"}, 2, {"--vocab"});
  check_error({"generate", workplace().run(), "--length", "-1"}, 2, {"--length"});
  check_error({"generate", workplace().run(), "--temperature", "-1"}, 2, {"--temperature", "-1"});
  check_error({"generate", workplace().run(), "--top-p", "0"}, 2, {"--top-p"});
  check_error({"prepare", "--text", "x", "--split", "50,20", "--out", "y"}, 2, {"50,20"});
  check_error({"prepare", "--text", "x", "--out", "y", "--vocabulary-from", "some"}, 2, {"some", "train or all"});
  check_error({"prepare", "--text", "x", "--out", "y", "--rules", "wikitext"}, 2, {"'wikitext'", "wikitext-103, lm1b"});
  check_error({"prepare", "--text", "x", "--out", "y", "--rules", "ptb", "--kind", "char"}, 2, {"ptb", "--kind char"});
  check_error({"evaluate", workplace().run(), "--data", workplace().data(), "--split", "tset"}, 2, {"tset"});
  check_error({"bench", "--filter", "no such", "--product-size", "16"}, 2, {"no such"});
  check_error({"bench", "--product-size", "1"}, 2, {"--product-size"});
  check_error({"bench", "--lengths", "100"}, 2, {"--lengths", "--against-vanilla"});
  check_error({"bench", "--against-vanilla", "--softmax"}, 2, {"--against-vanilla", "--softmax"});
  check_error({"bench", "--against-vanilla", "--config", kConfigs + "bench/bench-a.toml"}, 2,
              {"transformer_xl", "all_attention", "bench-a"});
}

TEST_CASE("command line: a config that is wrong is named, with key and nearest key") {
  const Workplace& place = workplace();
  const std::string misspelt = put_file(place.folder / "misspelt.toml", "[model]\nwidht = 16\n").string();
  check_error({"count", "--config", misspelt, "--vocab", "9"}, 2, {misspelt, "widht", "width"});
  check_error({"count", "--config", place.config(), "--set", "model.layer=1"}, 2, {"model.layer", "model.layers"});
  check_error({"count", "--config", place.config(), "--set", "model.width=7"}, 2, {"heads", "width 7"});
  check_error({"count", "--config", place.config(), "--set", "model.width=wide"}, 2, {"width", "wide"});
  check_error({"count", "--config", place.path("none.toml"), "--vocab", "9"}, 1, {"none.toml"});
  check_error({"train", "--config", misspelt, "--data", place.data(), "--out", place.path("never")}, 2, {"widht"});
  CHECK_FALSE(fs::exists(place.path("never")));
}

TEST_CASE("command line: --json is one object on stdout and nothing else") {
  const Workplace& place = workplace();
  const nlohmann::json count =
      json_of({"count", "--config", kConfigs + "all-attention/enwik8-all-attention-small.toml", "--json"});
  CHECK(count.at("parameters") == 38'501'725);
  CHECK(count.at("groups").at("persistent") == 18 * 2 * 512 * 1024);
  CHECK(json_of({"count", "--config", place.config(), "--vocab", "12", "--json"}).at("vocabulary") == 12);

  const std::string text = put_file(place.folder / "lines", small_text(500)).string();
  const nlohmann::json prepared = json_of({"prepare", "--text", text, "--out", place.path("lines-data"), "--json"});
  CHECK(prepared.at("splits").at("train").at("tokens") > 400);
  CHECK(prepared.at("vocabulary") > 5);

  const nlohmann::json evaluated =
      json_of({"evaluate", place.run(), "--data", place.data(), "--split", "test", "--exact", "--json"});
  CHECK(evaluated.at("bpc").get<double>() > 0);

  const nlohmann::json spans = json_of({"spans", place.run(), "--json", "--history"});
  CHECK(spans.at("layers").size() == 2);
  CHECK(spans.at("layers").at(0).at("heads").at(1).contains("zeta"));
  CHECK(spans.at("history").size() >= 1);
  CHECK(spans.at("history").back().at("visible_positions").size() == 2);

  CHECK_FALSE(spans.contains("cost"));
  const nlohmann::json costs = json_of({"spans", place.run(), "--json", "--cost"}).at("cost");
  CHECK(costs.at("cache_shortfalls") == 0);
  CHECK(costs.at("full").at("mean_window_positions") == 48);
  CHECK(costs.at("visible").at("mean_window_positions") == spans.at("mean_positions"));
  CHECK(json_of({"spans", place.checkpoint(), "--json", "--cost"}).at("cost").at("cache_shortfalls").is_null());

  const nlohmann::json bench =
      json_of({"bench", "--config", place.config(), "--vocab", "20", "--steps", "2", "--product-size", "32", "--json"});
  CHECK(bench.at("configs").at(0).at("steps") == 2);
  CHECK(bench.at("machine").at("product_flops_per_second").get<double>() > 0);
  const nlohmann::json compared = json_of({"bench", "--config", place.config(), "--vocab", "20", "--steps", "1",
                                           "--product-size", "32", "--compare-spans", "--json"});
  CHECK(compared.at("configs").size() == 4);
  CHECK(compared.at("comparisons").at("config").at("step").at("formula").get<double>() > 1);

  const nlohmann::json windows =
      json_of({"bench", "--against-vanilla", "--lengths", "6,9", "--steps", "1", "--set", "model.layers=1", "--set",
               "model.clamp=4", "--svg", place.path("table-9.svg"), "--json"})
          .at("against_vanilla");
  CHECK(windows.at("name") == "bench-table-9");
  CHECK(windows.at("clamp") == 4);
  CHECK(windows.at("lengths").at(1).at("attention_length") == 9);
  CHECK(read_xml(get_file(place.path("table-9.svg"))).all("polyline").size() == 8);
}

TEST_CASE("command line: without --json the reports are for people") {
  const Workplace& place = workplace();
  const ProcessResult rounded = run_engram({"bench", "--config", place.config(), "--vocab", "20", "--steps", "1",
                                            "--product-size", "32", "--dtype", "bf16"});
  CHECK_THAT(rounded.out, ContainsSubstring("operands rounded to bf16"));
  const ProcessResult trained = run_engram({"train", "--config", place.config(), "--data", place.data(), "--out",
                                            place.path("bf16"), "--steps", "2", "--dtype", "bf16"});
  CHECK(trained.exit_code == 0);
  CHECK_THAT(get_file(place.path("bf16/config.toml")), ContainsSubstring("products = \"bf16\""));
  const ProcessResult count =
      run_engram({"count", "--config", kConfigs + "all-attention/text8-transformer-22-layers.toml"});
  CHECK(count.exit_code == 0);
  CHECK_THAT(count.out,
             ContainsSubstring("116042956") && ContainsSubstring("TFLOP a step") && ContainsSubstring("1024"));
  const ProcessResult spans = run_engram({"spans", place.run(), "--csv", place.path("spans.csv")});
  CHECK(spans.exit_code == 0);
  CHECK_THAT(spans.out, ContainsSubstring("zeta") && ContainsSubstring("positions"));
  CHECK_THAT(get_file(place.path("spans.csv")), StartsWith("layer,head,zeta,span_positions,visible_positions\n0,0,"));
  CHECK(run_engram({"spans", place.run(), "--history", "--csv", place.path("history.csv")}).exit_code == 0);
  CHECK_THAT(get_file(place.path("history.csv")), StartsWith("step,layer,head,visible_positions\n") &&
                                                      ContainsSubstring(",0,1,") && ContainsSubstring(",1,0,"));
  const ProcessResult drawn =
      run_engram({"spans", place.run(), "--history", "--cost", "--svg", place.path("spans.svg")});
  CHECK(drawn.exit_code == 0);
  CHECK_THAT(drawn.out, ContainsSubstring("longest of the layer") && ContainsSubstring("TFLOP/step") &&
                            ContainsSubstring("zeros: 0"));
  const XmlElement drawing = read_xml(get_file(place.path("spans.svg")));
  CHECK(drawing.name == "svg");
  CHECK(drawing.all("polyline").size() == 3);
  const ProcessResult bench =
      run_engram({"bench", "--config", place.config(), "--vocab", "20", "--steps", "1", "--product-size", "32"});
  CHECK(bench.exit_code == 0);
  CHECK_THAT(bench.out, ContainsSubstring("GFLOP/s") && ContainsSubstring("attention_forward"));
}

TEST_CASE("command line: a seed writes its text again, with any number of threads") {
  const Workplace& place = workplace();
  const auto text = [&](const Arguments& more) {
    Arguments arguments{"generate", place.run(), "--prompt", "an age", "--length", "70"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = run_engram(arguments);
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    CHECK(result.out.size() == 76);
    CHECK_THAT(result.out, StartsWith("an age"));
    return result.out;
  };
  const std::string first = text({"--seed", "5"});
  CHECK(first == text({"--seed", "5"}));
  CHECK(first == text({"--seed", "5", "--threads", "1"}));
  CHECK(first == text({"--seed", "5", "--threads", "2"}));
  CHECK(first != text({"--seed", "6"}));
  CHECK(text({"--temperature", "0"}) == text({"--top-k", "1", "--seed", "9"}));
  const ProcessResult empty = run_engram({"generate", place.run(), "--length", "5"});
  CHECK(empty.exit_code == 0);
  CHECK(empty.out.size() == 5);
}

TEST_CASE("command line: on a terminal a text ends its line") {
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) return;  // where there are none
  REQUIRE((::grantpt(terminal) == 0 && ::unlockpt(terminal) == 0));
  const Arguments arguments{"generate", workplace().run(), "--prompt", "an a", "--length", "0"};
  CHECK(run_engram(arguments, {.largest_file = {}, .stdout_path = ::ptsname(terminal)}).exit_code == 0);
  std::string written;
  char bytes[64];
  for (ssize_t count = 0; (count = ::read(terminal, bytes, sizeof(bytes))) > 0;)
    written.append(bytes, static_cast<std::size_t>(count));
  CHECK(written == "an a\r\n");
  ::close(terminal);
  CHECK(run_engram(arguments).out == "an a");
}

TEST_CASE("command line: an empty text and data that is replaced are told") {
  const Workplace& place = workplace();
  check_error({"attention", place.run(), "--text", ""}, 2, {"at least one token, got none"});
  const std::string text = put_file(place.folder / "twice", small_text(500)).string(), out = place.path("twice-data");
  const ProcessResult first = run_engram({"prepare", "--text", text, "--out", out, "--json"}),
                      second = run_engram({"prepare", "--text", text, "--out", out, "--json"});
  // The object takes the place of the summary, which is what the command prints else.
  CHECK(first.err.empty());
  CHECK(second.err.empty());
  CHECK(nlohmann::json::parse(first.out).at("replaced") == false);
  CHECK(nlohmann::json::parse(second.out).at("replaced") == true);
  const ProcessResult third = run_engram({"prepare", "--text", text, "--out", out});
  CHECK_THAT(third.out, ContainsSubstring("in the place of the data set that was there"));
  CHECK(third.err.empty());
}

TEST_CASE("command line: texts and data that cannot be used") {
  const Workplace& place = workplace();
  const std::string empty = put_file(place.folder / "empty", "").string();
  const std::string line = put_file(place.folder / "line", "one line\n").string();
  const std::string out = place.path("no-data");
  check_error({"prepare", "--text", empty, "--out", out}, 1, {empty, "empty"});
  check_error({"prepare", "--text", line, "--out", out}, 1, {line, "line"});
  check_error({"prepare", "--text", place.path("missing"), "--out", out}, 1, {"missing"});
  check_error({"prepare", "--text", place.path("text"), "--out", "/proc/no-data"}, 1, {"/proc/no-data"});
  check_error({"prepare", "--text", place.path("text"), "--out", line + "/below"}, 1, {line});
  CHECK_FALSE(fs::exists(out));
  CHECK(get_file(line) == "one line\n");

  // As many symbols as the run knows, but others.
  std::string other_text = small_text(6000);
  std::ranges::replace(other_text, 'a', 'q');
  const std::string other = place.path("other-data");
  put_file(place.folder / "other", other_text);
  REQUIRE(run_engram({"prepare", "--text", place.path("other"), "--out", other}).exit_code == 0);
  check_error({"evaluate", place.run(), "--data", other}, 1, {other, "vocabular"});
  check_error({"train", "--resume", "--data", other, "--out", place.run(), "--steps", "5"}, 1, {other, "vocabular"});
  check_error({"evaluate", place.run(), "--data", place.path("missing")}, 1, {"missing"});
  check_error({"train", "--config", place.config(), "--data", place.data(), "--out", "/proc/no-run"}, 1,
              {"/proc/no-run"});
  check_error({"generate", place.run(), "--prompt", "an Xylophone"}, 2, {"'X'", "position 3"});
}

TEST_CASE("command line: a device that is not there is said, with one that is") {
  const Workplace& place = workplace();
  check_error({"generate", place.run(), "--device", "cuda:77"}, 1, {"cuda:77", "--device cpu"});
  check_error({"evaluate", place.run(), "--data", place.data(), "--device", "cuda:78"}, 1, {"cuda:78", "--device cpu"});
  check_error(
      {"train", "--config", place.config(), "--data", place.data(), "--out", place.path("gpu"), "--device", "cuda:77"},
      1, {"cuda:77", "--device cpu"});
  CHECK_FALSE(fs::exists(place.path("gpu")));
  check_error({"bench", "--device", "cuda:77"}, 1, {"cuda:77", "--device cpu"});
  check_error({"bench", "--device", "gpu"}, 2, {"gpu", "cpu, cuda"});
}

TEST_CASE("command line: a checkpoint that is damaged or foreign is one error, in every command") {
  const Workplace& place = workplace();
  const std::string good = get_file(place.checkpoint());
  std::string flipped = good, oversized = good;
  flipped[good.size() - 100] ^= 4;
  oversized.replace(0, 8, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8));
  const float number = 1;
  const std::string foreign = place.path("foreign.safetensors");
  write_safetensors(foreign, std::vector{host_tensor("weight", DType::f32, {1}, &number)}, {{"format", "pt"}});
  const std::vector<std::pair<std::string, std::string>> bad{
      {"truncated.safetensors", good.substr(0, good.size() / 2)},
      {"cut-in-header.safetensors", good.substr(0, 40)},
      {"flipped.safetensors", flipped},
      {"oversized.safetensors", oversized},
      {"empty.safetensors", ""},
      {"text.safetensors", "this is no checkpoint, whatever its name says\n"},
      {"foreign.safetensors", get_file(foreign)}};
  for (const auto& [name, bytes] : bad) {
    const std::string path = put_file(place.folder / name, bytes).string();
    check_error({"generate", path, "--length", "1"}, 1, {path});
    check_error({"spans", path}, 1, {path});
    check_error({"evaluate", path, "--data", place.data()}, 1, {path});
    CHECK(get_file(path) == bytes);
  }
  check_error({"generate", place.path("nowhere")}, 1, {"nowhere"});
  check_error({"spans", place.data()}, 1, {place.data()});

  // A run whose checkpoint is damaged is not trained over.
  fs::create_directories(place.folder / "damaged/checkpoint");
  const fs::path damaged = put_file(place.folder / "damaged/checkpoint/model.safetensors", flipped);
  check_error({"train", "--resume", "--data", place.data(), "--out", place.path("damaged")}, 1, {damaged.string()});
  CHECK(get_file(damaged) == flipped);
}

TEST_CASE("command line: no permission") {
  if (::geteuid() == 0) return;  // who may do everything is not refused
  const Workplace& place = workplace();
  const fs::path secret = put_file(place.folder / "secret.txt", small_text(500));
  fs::permissions(secret, fs::perms::none);
  check_error({"prepare", "--text", secret.string(), "--out", place.path("d")}, 1, {secret.string(), "ermission"});
  const fs::path closed = place.folder / "closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::owner_read | fs::perms::owner_exec);
  check_error({"prepare", "--text", place.path("text"), "--out", (closed / "d").string()}, 1, {"closed", "ermission"});
  check_error({"train", "--config", place.config(), "--data", place.data(), "--out", (closed / "r").string()}, 1,
              {"closed", "ermission"});
}

TEST_CASE("command line: results that cannot be written are an error") {
  for (const Arguments& arguments : {Arguments{"count", "--config", kConfigs + "bench/bench-a.toml"},
                                     Arguments{"count", "--config", kConfigs + "bench/bench-a.toml", "--json"},
                                     Arguments{"generate", workplace().run(), "--length", "3"}}) {
    const ProcessResult result = run_engram(arguments, {.largest_file = {}, .stdout_path = "/dev/full"});
    INFO(result.err);
    CHECK(result.exit_code == 1);
    CHECK_THAT(result.err, ContainsSubstring("standard output") && ContainsSubstring("No space left"));
  }
}

}  // namespace engram::harness::command_line_test
