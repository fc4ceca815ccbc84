/// Words from files to perplexities, by the program as users run it, and the arithmetic of perplexities.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <sstream>

#include "apps/run/evaluation/loss_report.hpp"
#include "apps/run/training/progress.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::word_run_test {
namespace {

/// Three files of words and a finished run over them, made once.
struct WordPlace {
  WordPlace() {
    put_file(folder / "train.txt", "<unk> is rare\n" + small_text(9000, 1));
    put_file(folder / "valid.txt", small_text(2500, 2));
    put_file(folder / "test.txt", small_text(2500, 3));
    put_file(folder / "config.toml", small_config());
    prepared = run_engram({"prepare", "--kind", "word", "--train", path("train.txt"), "--valid", path("valid.txt"),
                           "--test", path("test.txt"), "--out", data(), "--json"});
    if (prepared.exit_code != 0) throw std::runtime_error(prepared.err);
    trained = run_engram({"train", "--config", path("config.toml"), "--data", data(), "--out", run()});
    if (trained.exit_code != 0) throw std::runtime_error(trained.err);
  }
  std::string path(std::string_view name) const { return (folder / name).string(); }
  std::string data() const { return path("data"); }
  std::string run() const { return path("run"); }
  TemporaryFolder folder;
  ProcessResult prepared, trained;
};
const WordPlace& place() {
  static const WordPlace made;
  return made;
}

std::vector<nlohmann::json> metrics_of(const std::string& run) {
  std::istringstream file(get_file(run + "/metrics.jsonl"));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace

TEST_CASE("word run: prepare says what it made") {
  const nlohmann::json prepared = nlohmann::json::parse(place().prepared.out);
  CHECK(prepared.at("kind") == "word");
  CHECK(prepared.at("vocabulary") == 14);  // ten words, <eos>, <unk>, is, rare
  CHECK(prepared.at("splits").at("valid").at("end_tokens") > 20);
  CHECK(prepared.at("splits").at("valid").at("unknown") == 0);
  const WordPlace& words = place();
  const ProcessResult told =
      run_engram({"prepare", "--kind", "word", "--train", words.path("train.txt"), "--valid", words.path("valid.txt"),
                  "--test", words.path("test.txt"), "--out", words.path("told")});
  CHECK_THAT(told.out, ContainsSubstring("line ends") && ContainsSubstring("vocabulary of 14 words"));
  CHECK_THAT(error_of({"prepare", "--kind", "word", "--text", place().path("train.txt"), "--out", place().path("no"),
                       "--eol", "some"},
                      2),
             ContainsSubstring("--eol must be keep or drop, got 'some'"));
  CHECK_THAT(error_of({"prepare", "--kind", "words", "--text", "x", "--out", "y"}, 2),
             ContainsSubstring("char, word or bpe"));
  CHECK_THAT(error_of({"prepare", "--kind", "word", "--text", "x", "--out", "y", "--ties", "some"}, 2),
             ContainsSubstring("--ties must be later or first"));
  CHECK_THAT(error_of({"prepare", "--kind", "word", "--text", "x", "--out", "y", "--oov", "some"}, 2),
             ContainsSubstring("--oov must be error or unk"));
  CHECK_THAT(error_of({"prepare", "--kind", "word", "--text", "x", "--out", "y", "--min-count", "0"}, 2),
             ContainsSubstring("--min-count"));
}

TEST_CASE("word run: training reports perplexities, the short validation by its name") {
  int trained = 0, validated = 0;
  for (const nlohmann::json& line : metrics_of(place().run())) {
    const std::string event = line.at("event");
    if (event != "train" && event != "valid_short") continue;
    CHECK(line.at("ppl").get<double>() == Approx(std::exp(line.at("nll").get<double>())));
    CHECK(line.at("bits").get<double>() == Approx(line.at("nll").get<double>() / std::log(2.0)));
    CHECK_FALSE(line.contains("bpc"));
    CHECK(line.contains("ppl_no_eol") == (event == "valid_short"));
    ++(event == "train" ? trained : validated);
  }
  CHECK(trained == 5);
  CHECK(validated == 4);
  CHECK_THAT(place().trained.err, ContainsSubstring("step 24 valid_short loss ") && ContainsSubstring(" ppl_no_eol ") &&
                                      ContainsSubstring("step 5/24 loss ") && !ContainsSubstring("bpc"));
  const ProcessResult history = run_engram({"spans", place().run(), "--history"});
  CHECK(history.exit_code == 0);
}

TEST_CASE("word run: evaluate's perplexities are those of the losses of the tokens") {
  const std::string npy = place().path("losses.npy");
  for (const bool exact : {true, false}) {
    Arguments arguments{"evaluate", place().run(), "--data", place().data(), "--split", "test", "--json"};
    if (exact) arguments.insert(arguments.end(), {"--exact", "--per-token", npy});
    const nlohmann::json evaluated = json_of(arguments);
    CHECK(evaluated.at("ppl").get<double>() == Approx(std::exp(evaluated.at("nll").get<double>())));
    CHECK(evaluated.at("bits").get<double>() == Approx(evaluated.at("nll").get<double>() / std::log(2.0)));
    CHECK_FALSE(evaluated.contains("bpc"));
    CHECK(evaluated.at("way") == (exact ? "exact" : "paper"));
    if (!exact) continue;
    const data::DataSet data = data::DataSet::open(place().data());
    const data::TokenView tokens = data.split("test");
    const std::string bytes = get_file(npy);
    std::vector<float> losses(static_cast<std::size_t>(tokens.size()));
    std::memcpy(losses.data(), bytes.data() + (bytes.size() - 4 * losses.size()), 4 * losses.size());
    double all = 0, words = 0;
    std::int64_t word_count = 0;
    for (std::int64_t i = 1; i < tokens.size(); ++i) {
      const double loss = losses[static_cast<std::size_t>(i)];
      all += loss;
      if (tokens[i] == data.vocabulary().end_token()) continue;
      words += loss;
      ++word_count;
    }
    CHECK(word_count < tokens.size() - 20);
    CHECK(evaluated.at("tokens") == tokens.size() - 1);
    CHECK(evaluated.at("ppl").get<double>() == Approx(std::exp(all / double(tokens.size() - 1))).epsilon(1e-5));
    CHECK(evaluated.at("ppl_no_eol").get<double>() == Approx(std::exp(words / double(word_count))).epsilon(1e-5));
    CHECK(evaluated.at("ppl_no_eol") != evaluated.at("ppl"));
  }
  const ProcessResult shown = run_engram({"evaluate", place().run(), "--data", place().data(), "--best"});
  CHECK_THAT(shown.out,
             ContainsSubstring(" nats  bits ") && ContainsSubstring("  ppl ") && ContainsSubstring("  ppl_no_eol "));

  const RunFolder characters;
  CHECK_THAT(error_of({"evaluate", place().run(), "--data", characters.data().string()}, 1),
             ContainsSubstring("vocabulary"));
}

TEST_CASE("word run: a vocabulary in clusters is measured exactly in one stream and in several") {
  const std::string run = place().path("clusters");
  REQUIRE(run_engram({"train", "--config", place().path("config.toml"), "--data", place().data(), "--out", run,
                      "--steps", "2", "--set", "model.cutoffs=5,10"})
              .exit_code == 0);
  const auto measured = [&](const Arguments& more) {
    Arguments arguments{"evaluate", run, "--data", place().data(), "--split", "train", "--exact", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return json_of(arguments);
  };
  // As many streams as are worth while; what they read again and what is behind their ends does not count.
  const nlohmann::json usual = measured({}), one = measured({"--batch", "1"}), five = measured({"--batch", "5"});
  CHECK(usual.at("batch") > 1);
  for (const nlohmann::json& other : {usual, five}) {
    CHECK(other.at("tokens") == one.at("tokens"));
    CHECK(other.at("nll").get<double>() == Approx(one.at("nll").get<double>()).epsilon(1e-5));
    CHECK(other.at("ppl_no_eol").get<double>() == Approx(one.at("ppl_no_eol").get<double>()).epsilon(1e-5));
  }
}

TEST_CASE("word run: without line ends among the tokens there is one perplexity") {
  const std::string data = place().path("dropped"), run = place().path("dropped-run");
  REQUIRE(run_engram({"prepare", "--kind", "word", "--text", place().path("train.txt"), "--split", "80,10,10", "--eol",
                      "drop", "--out", data})
              .exit_code == 0);
  REQUIRE(run_engram({"train", "--config", place().path("config.toml"), "--data", data, "--out", run, "--steps", "2",
                      "--set", "training.block=16"})
              .exit_code == 0);
  const nlohmann::json evaluated = json_of({"evaluate", run, "--data", data, "--exact", "--json"});
  CHECK(evaluated.contains("ppl"));
  CHECK_FALSE(evaluated.contains("ppl_no_eol"));
  CHECK_THAT(error_of({"generate", run, "--length", "3"}, 2), ContainsSubstring("--prompt TEXT"));
  CHECK_THAT(error_of({"generate", run, "--length", "3", "--prompt", " \n "}, 2), ContainsSubstring("--prompt TEXT"));
  CHECK(run_engram({"generate", run, "--length", "3", "--prompt", "an age"}).exit_code == 0);
}

TEST_CASE("word run: a run goes on bit for bit") {
  const std::string run = place().path("resumed");
  const auto train = [&](const std::string& steps, const Arguments& more) {
    Arguments arguments{"train", "--config", place().path("config.toml"), "--data", place().data(), "--out", run};
    arguments.insert(arguments.end(), {"--steps", steps});
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = run_engram(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
  };
  train("14", {});
  train("24", {"--resume"});
  const nlohmann::json last = metrics_of(place().run()).back(), resumed = metrics_of(run).back();
  CHECK(last.at("event") == "end");
  CHECK(resumed.at("event") == "end");
  const nlohmann::json whole = json_of({"evaluate", place().run(), "--data", place().data(), "--json"});
  CHECK(json_of({"evaluate", run, "--data", place().data(), "--json"}).at("nll") == whole.at("nll"));
}

TEST_CASE("word run: generate writes words") {
  const auto written = [&](const Arguments& more) {
    Arguments arguments{"generate", place().run(), "--seed", "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = run_engram(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    return result.out;
  };
  const std::string text = written({"--prompt", " an   age ", "--length", "60"});
  CHECK(text == written({"--prompt", "an age", "--length", "60"}));
  CHECK_THAT(text, StartsWith("an age"));
  // Two words of the prompt and 60 tokens, each a word or a line end; one space between two words.
  std::int64_t tokens = std::count(text.begin(), text.end(), '\n');
  std::istringstream words(text);
  for (std::string word; words >> word;) ++tokens;
  CHECK(tokens == 62);
  CHECK_THAT(text, !ContainsSubstring("  ") && !ContainsSubstring(" \n") && !ContainsSubstring("\n ") &&
                       !ContainsSubstring("<eos>"));
  // At the start of a line there is no space.
  const std::string start = written({"--length", "8"});
  CHECK(start.substr(0, 1) != " ");
  CHECK(written({"--prompt", "an age\n", "--length", "0"}) == "an age\n");
  CHECK(written({"--prompt", "an odd age", "--oov", "unk", "--length", "0"}) == "an <unk> age");
  CHECK_THAT(
      error_of({"generate", place().run(), "--prompt", "an odd age"}, 2),
      ContainsSubstring("only words that the model knows, got 'odd' at position 3") && ContainsSubstring("--oov unk"));
  CHECK_THAT(error_of({"generate", place().run(), "--prompt", "an", "--oov", "some"}, 2),
             ContainsSubstring("error or unk"));
}

TEST_CASE("losses of words: perplexities of all targets and of those that are no line ends") {
  const auto vocabulary = [](bool end_of_line) {
    data::WordTable words;
    for (const char* word : {"a", "<eos>", "b"}) words.add(word);
    return data::Vocabulary(data::WordVocabulary(words, end_of_line, 0));
  };
  const std::array<std::int32_t, 6> ids{0, 1, 2, 1, 0, 2};
  const data::TokenView tokens(std::span<const std::int32_t>(ids.data(), ids.size()));
  PartialLoss kept = PartialLoss::without_ends(tokens, vocabulary(true)),
              dropped = PartialLoss::without_ends(tokens, vocabulary(false)),
              marked = PartialLoss::without_certain_marks(tokens, 1),
              none = PartialLoss::without_certain_marks(tokens, -1);
  CHECK_FALSE(kept.mean().has_value());
  for (std::int64_t i = 1; i < 6; ++i) {
    kept.add(i, static_cast<double>(i));
    dropped.add(i, static_cast<double>(i));
  }
  // Of ids 0 1 2 1 0 2 no 1 follows a 1, so every target counts.
  for (std::int64_t i = 1; i < 6; ++i) marked.add(i, 1);
  CHECK(marked.mean() == 1);
  none.add(1, 1);
  CHECK_FALSE(none.mean().has_value());
  // Targets 2, 4 and 5; 1 and 3 are line ends.
  REQUIRE(kept.mean().has_value());
  CHECK(*kept.mean() == Approx(11.0 / 3));
  CHECK_FALSE(dropped.mean().has_value());

  const MeanLoss loss{.all = 3, .no_eol = 11.0 / 3};
  const nlohmann::json json = loss_json(data::TokenKind::word, loss);
  CHECK(json.size() == 4);
  CHECK(json.at("ppl").get<double>() == Approx(20.085536923187668));
  CHECK(json.at("ppl_no_eol").get<double>() == Approx(39.12128430));
  CHECK(json.at("bits").get<double>() == Approx(4.3280851226668905));
  CHECK(loss_text(data::TokenKind::word, loss) == "ppl 20.086 ppl_no_eol 39.121");
  CHECK(loss_text(data::TokenKind::word, {.all = 3, .no_eol = {}}) == "ppl 20.086");
  CHECK(loss_text(data::TokenKind::character, {.all = 3, .no_eol = {}}) == "bpc 4.3281");
  CHECK(loss_json(data::TokenKind::character, loss).size() == 2);
  CHECK(progress_text({.step = 1,
                       .steps = 2,
                       .loss = 3,
                       .rate = 0.001,
                       .tokens_per_second = 7,
                       .mean_span = 8,
                       .seconds_left = 9,
                       .kind = data::TokenKind::word}) ==
        "step 1/2 loss 3.0000 ppl 20.086 lr 1.00e-03 tokens/s 7 span 8.0 left 0:09");
}

}  // namespace engram::harness::word_run_test
