/// Subwords from files to perplexities and text, by the program as users run it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "apps/data/text/utf8.hpp"
#include "apps/run/evaluation/loss_report.hpp"
#include "apps/run/evaluation/score.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/data/merge_texts.hpp"
#include "tests/apps/data/subword_texts.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::subword_run_test {
namespace {

/// A text, prepared as subwords, and a finished run over it, made once.
struct SubwordPlace {
  SubwordPlace() {
    put_file(folder / "text.txt", subword_text(900));
    put_file(folder / "config.toml", small_config());
    prepared = run_engram({"prepare", "--kind", "bpe", "--vocabulary", "300", "--text", path("text.txt"), "--split",
                           "60,20,20", "--out", data(), "--json"});
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
const SubwordPlace& place() {
  static const SubwordPlace made;
  return made;
}

}  // namespace

TEST_CASE("subword run: prepare says what it made, the same with one thread and with two") {
  const nlohmann::json prepared = nlohmann::json::parse(place().prepared.out);
  CHECK(prepared.at("kind") == "bpe");
  CHECK(prepared.at("vocabulary") == 300);
  const nlohmann::json& train = prepared.at("splits").at("train");
  CHECK(train.at("words") < train.at("tokens"));
  CHECK(train.at("tokens") < train.at("bytes"));
  CHECK(train.at("altered") == 0);
  CHECK(place().prepared.err.empty());
  for (const char* threads : {"1", "2"}) {
    ::setenv("OMP_NUM_THREADS", threads, 1);
    const std::string out = place().path(threads);
    const ProcessResult told = run_engram({"prepare", "--kind", "bpe", "--vocabulary", "300", "--text",
                                           place().path("text.txt"), "--split", "60,20,20", "--out", out});
    CHECK(told.exit_code == 0);
    CHECK_THAT(told.out, ContainsSubstring("words  source") && ContainsSubstring("vocabulary of 300 subwords"));
    ::unsetenv("OMP_NUM_THREADS");
    for (const char* file : {"/vocabulary.model", "/vocabulary.json", "/data.json", "/train.tokens", "/test.tokens"})
      CHECK(get_file(out + file) == get_file(place().data() + file));
  }
}

TEST_CASE("subword run: wrong options of prepare end with one message") {
  const Arguments base{"prepare", "--kind", "bpe", "--text", place().path("text.txt"), "--out", place().path("no")};
  const auto with = [&base](const Arguments& more) {
    Arguments all = base;
    all.insert(all.end(), more.begin(), more.end());
    return error_of(all, 2);
  };
  CHECK_THAT(with({}), ContainsSubstring("--vocabulary must be at most ") && ContainsSubstring("got 8000"));
  CHECK_THAT(with({"--vocabulary", "100"}),
             ContainsSubstring("--vocabulary must be at least ") && ContainsSubstring("got 100"));
  CHECK_THAT(with({"--vocabulary", "0"}), ContainsSubstring("--vocabulary"));
  CHECK_THAT(with({"--lower"}), ContainsSubstring("got one of another kind"));
  CHECK_THAT(with({"--bpe-sample", "10", "--bpe-model", "x"}), ContainsSubstring("learned already"));
  CHECK_THAT(error_of({"prepare", "--kind", "char", "--text", "x", "--out", "y", "--bpe-sample", "10"}, 2),
             ContainsSubstring("work with --kind bpe, got them with char"));
}

TEST_CASE("subword run: evaluate reports losses per token, per word and per byte") {
  const nlohmann::json prepared = nlohmann::json::parse(place().prepared.out).at("splits").at("test");
  const auto number = [](const nlohmann::json& json, const char* name) { return json.at(name).get<double>(); };
  for (const bool exact : {false, true}) {
    Arguments arguments{"evaluate", place().run(), "--data", place().data(), "--split", "test", "--json"};
    if (exact) arguments.push_back("--exact");
    const nlohmann::json evaluated = json_of(arguments);
    const double nll = number(evaluated, "nll");
    CHECK(number(evaluated, "ppl_bpe") == Approx(std::exp(nll)));
    CHECK_FALSE(evaluated.contains("ppl"));
    CHECK_FALSE(evaluated.contains("bpc"));
    CHECK(evaluated.at("words_in_split") == prepared.at("words"));
    // Words a second: as tokens that are scored, in the proportion of the split's.
    CHECK(number(evaluated, "words_per_second") <
          number(evaluated, "tokens_per_second") * number(prepared, "words") / number(evaluated, "tokens") * 1.01);
    CHECK(number(evaluated, "words_per_second") > 0);
    CHECK(evaluated.at("bytes_in_split") == prepared.at("bytes"));
    const double total = nll * number(prepared, "tokens");
    CHECK(number(evaluated, "ppl_word") == Approx(std::exp(total / number(prepared, "words"))));
    CHECK(number(evaluated, "bits_per_byte") == Approx(total / number(prepared, "bytes") / std::log(2.0)));
    CHECK(number(evaluated, "ppl_word") > number(evaluated, "ppl_bpe"));
  }
  const ProcessResult shown = run_engram({"evaluate", place().run(), "--data", place().data()});
  CHECK_THAT(shown.out, ContainsSubstring("  ppl_bpe ") && ContainsSubstring("ppl_word ") &&
                            ContainsSubstring("  bits_per_byte ") && ContainsSubstring(" words and "));
  CHECK_THAT(place().trained.err, ContainsSubstring(" ppl_bpe "));
}

TEST_CASE("subword run: characters have the same figures") {
  const RunFolder folder(12000);
  const std::string run = (folder / "run").string(), data = folder.data().string();
  put_file(folder / "config.toml", small_config());
  REQUIRE(run_engram({"train", "--config", (folder / "config.toml").string(), "--data", data, "--out", run, "--set",
                      "schedule.steps=2"})
              .exit_code == 0);
  const nlohmann::json evaluated = json_of({"evaluate", run, "--data", data, "--json"});
  // Every token is a byte, but for an end that was appended.
  const double tokens = evaluated.at("tokens_in_split").get<double>();
  const double bytes = evaluated.at("bytes_in_split").get<double>();
  CHECK(evaluated.at("bits_per_byte").get<double>() ==
        Approx(evaluated.at("bpc").get<double>() * tokens / bytes).epsilon(1e-12));
  CHECK(tokens - bytes <= 1);
  CHECK(evaluated.at("ppl_word").get<double>() ==
        Approx(std::exp(evaluated.at("nll").get<double>() * tokens / evaluated.at("words_in_split").get<double>())));
}

TEST_CASE("subword run: generate reads and writes text") {
  const auto generate = [](const std::string& prompt, const char* seed) {
    const ProcessResult result =
        run_engram({"generate", place().run(), "--prompt", prompt, "--length", "60", "--seed", seed});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out;
  };
  // \u20ac is no letter of the model: three bytes in the prompt. Bytes that a model writes are no UTF-8 in general.
  for (const char* seed : {"1", "2", "3"}) {
    const std::string written = generate("stone \u20ac\tthe", seed);
    CHECK(written.starts_with("stone \u20ac\tthe"));
    CHECK(written.size() > 60);
    CHECK(data::find_invalid_utf8(written) == written.size());
    CHECK(written == generate("stone \u20ac\tthe", seed));
  }
  CHECK_FALSE(generate("", "1").empty());
  CHECK_THAT(error_of({"generate", place().run(), "--prompt", "ab\xff"}, 2), ContainsSubstring("the prompt"));
  CHECK_THAT(error_of({"generate", place().run(), "--prompt", "a", "--oov", "unk"}, 2), ContainsSubstring("subwords"));
}

TEST_CASE("subword run: other commands read the model's text and data") {
  const ProcessResult attention = run_engram({"attention", place().run(), "--text", "stone river \u20ac", "--json"});
  INFO(attention.err);
  CHECK(attention.exit_code == 0);
  // Another model of byte pairs has other ids.
  const std::string other = place().path("other");
  REQUIRE(run_engram(
              {"prepare", "--kind", "bpe", "--vocabulary", "301", "--text", place().path("text.txt"), "--out", other})
              .exit_code == 0);
  CHECK_THAT(error_of({"evaluate", place().run(), "--data", other}, 1),
             ContainsSubstring("their ids mean different subwords"));
  CHECK_THAT(error_of({"train", "--config", place().path("config.toml"), "--data", place().data(), "--out",
                       place().path("clusters"), "--set", "model.cutoffs=100"},
                      2),
             ContainsSubstring("must hold words, got subwords"));
}

TEST_CASE("subword run: given codes and Moses' words, from articles to text") {
  const TemporaryFolder folder;
  const auto path = [&folder](std::string_view name) { return (folder / name).string(); };
  put_file(folder / "codes", kFastCodes);
  put_file(folder / "config.toml", small_config());
  std::string shard;
  for (int i = 0; i < 60; ++i)
    shard += "<doc title=\"" + std::to_string(i) + "\">\nThe lowest, newest slow (" + std::to_string(i) +
             ").\nIt's low...\n</doc>\n";
  put_file(folder / "news", shard);
  const Arguments prepare{"prepare", "--kind",     "bpe",    "--articles",  path("news"), "--held-out",  "15",
                          "--out",   path("data"), "--json", "--tokenizer", "moses",      "--bpe-codes", path("codes")};
  const nlohmann::json prepared = json_of(prepare);
  CHECK(prepared.at("splits").at("valid").at("articles") == 15);
  CHECK(prepared.at("splits").at("valid").at("words") == 15 * 7);
  REQUIRE(run_engram({"train", "--config", path("config.toml"), "--data", path("data"), "--out", path("run"), "--set",
                      "schedule.steps=3"})
              .exit_code == 0);
  // Losses are per word of the text, of which the tokens are several times as many.
  const nlohmann::json evaluated = json_of({"evaluate", path("run"), "--data", path("data"), "--exact", "--json"});
  const double tokens = evaluated.at("tokens_in_split").get<double>(), nll = evaluated.at("nll").get<double>();
  CHECK(evaluated.at("words_in_split") == 105);
  CHECK(tokens > 210);
  CHECK(evaluated.at("ppl_word").get<double>() == Approx(std::exp(nll * tokens / 105)));
  CHECK_FALSE(evaluated.contains("bits_per_byte"));

  const ProcessResult written =
      run_engram({"generate", path("run"), "--prompt", "It's slow (1).", "--length", "80", "--seed", "2"});
  INFO(written.err);
  CHECK(written.out.starts_with("It's slow (1)."));
  CHECK(written.out.find("@@") == std::string::npos);
  CHECK_THAT(error_of({"prepare", "--kind", "bpe", "--text", "x", "--out", "y", "--moses-hyphens"}, 2),
             ContainsSubstring("--moses-hyphens works with --tokenizer moses"));
  CHECK_THAT(error_of({"prepare", "--kind", "bpe", "--text", "x", "--out", "y", "--held-out", "3"}, 2),
             ContainsSubstring("--held-out works with --articles"));
}

TEST_CASE("text loss: by hand") {
  // 10 tokens of 2 nats each over 4 words and 25 bytes.
  const TextLoss loss({.words = 4, .bytes = 25}, 10, 2);
  CHECK(*loss.ppl_word == Approx(std::exp(5.0)));
  CHECK(*loss.bits_per_byte == Approx(0.8 / std::log(2.0)));
  CHECK_FALSE(TextLoss({.words = 0, .bytes = 25}, 10, 2).ppl_word);
  CHECK_FALSE(TextLoss({.words = 4, .bytes = 0}, 10, 2).bits_per_byte);
  CHECK(amount_json({.words = 4, .bytes = 0}, 10, 2).size() == 3);
  CHECK(score_name(data::TokenKind::subword) == "ppl_bpe");
  CHECK(score_of(data::TokenKind::subword, 3.0) == Approx(std::exp(3.0)));
  CHECK(loss_text(data::TokenKind::subword, {.all = 3, .no_eol = {}}) == "ppl_bpe 20.086");
  CHECK(loss_json(data::TokenKind::subword, {.all = 3, .no_eol = {}}).size() == 3);
}

}  // namespace engram::harness::subword_run_test
