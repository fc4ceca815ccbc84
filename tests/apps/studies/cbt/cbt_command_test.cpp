/// `engram cbt` with a file that is in order and one that is not.

#include <algorithm>
#include <sstream>
#include <string>

#include "apps/data/files/read_file.hpp"
#include "apps/report/csv_table.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/studies/cbt/question_results.hpp"
#include "apps/studies/cbt/question_scores.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/studies/cbt/cbt_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::cbt_command_test {

using namespace cbt;

TEST_CASE("cbt command: accuracies by file and in all, strict and lenient", "[cbt][night]") {
  const CbtFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  put_file(folder / "config.toml", R"([model]
family = "recurrent"
embedding_width = 8
width = 12
readout = "key_value_predict"
window = 3
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 6
[training]
batch = 2
block = 10
seed = 3
)");
  const ProcessResult trained =
      run_engram({"train", "--config", path("config.toml"), "--data", path("data"), "--out", path("run")});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::vector<TokenQuestion> questions = folder.questions(6);  // questions.txt
  put_file(folder / "damaged.txt", block(1, 3, 2) + "1 Too short .\n\n" + block(2, 9, 0) + "1 a\n2 b\n4 c\n\n");

  const Arguments base{"cbt", path("run"), "--data", path("data"), "--dtype", "f64", "--json"};
  const auto with = [&](const Arguments& more) {
    Arguments all = base;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const nlohmann::json one = json_of(with({"--questions", path("questions.txt")}));
  Runtime runtime({}, 1);
  TrainedModel model(path("run"), CheckpointKind::newest, runtime, DType::f64);
  QuestionScorer scorer({dynamic_cast<RecurrentModel&>(model.model()), runtime, DType::f64}, CandidateScore::whole, 32,
                        10);
  QuestionResults expected;
  std::int64_t answered = 0;
  const auto scores = scorer(questions, [&](std::int64_t done, std::int64_t all) {
    CHECK(all == std::ssize(questions));
    answered = done;
  });
  CHECK(answered == std::ssize(questions));
  for (std::size_t i = 0; i < questions.size(); ++i) expected.add(questions[i], scores[i]);
  CHECK(one.at("score") == "whole");
  CHECK(one.at("files").size() == 1);
  CHECK(one.at("files")[0].at("name") == "questions.txt");
  CHECK(one.at("all").at("questions") == 11);
  CHECK(one.at("all").at("correct") == expected.correct);
  CHECK(one.at("all").at("accuracy") == expected.accuracy());
  CHECK(one.at("all").at("tie_aware_accuracy") == expected.tie_aware_accuracy());
  CHECK(one.at("all").at("unknown_words") == expected.unknown_words);
  CHECK(one.at("questions_per_second").get<double>() > 0);

  json_of(with({"--questions", path("questions.txt"), "--csv", path("candidates.csv")}));
  const CsvTable table = parse_csv(data::read_bytes(folder / "candidates.csv"), "candidates.csv");
  CHECK(table.names == std::vector<std::string>{"file", "block", "line", "candidate", "ln_p", "answer", "predicted"});
  REQUIRE(table.rows.size() == 110);
  std::int64_t correct = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::vector<std::string>& fields = table.rows[row];
    const std::size_t question = row / 10, candidate = row % 10;
    CHECK(fields[0] == "questions.txt");
    CHECK(fields[1] == std::to_string(question + 1));
    CHECK(fields[2] == std::to_string(22 * question + 1));  // 21 lines and an empty one
    if (candidate == 4) CHECK(fields[3] == "Zorro");
    CHECK(std::stod(fields[4]) == Approx(scores[question].at(candidate)).epsilon(1e-8));
    CHECK(fields[5] == (candidate == questions[question].answer ? "1" : "0"));
    CHECK(fields[6] == (candidate == BestCandidates(scores[question]).first ? "1" : "0"));
    correct += fields[5] == "1" && fields[6] == "1" ? 1 : 0;
  }
  CHECK(correct == expected.correct);

  // A window of 3 sees less at the start of each block of 10.
  const nlohmann::json apart =
      json_of(with({"--questions", path("questions.txt"), "--carry", "none", "--csv", path("apart.csv")}));
  CHECK(apart.at("all").at("questions") == 11);
  const CsvTable apart_table = parse_csv(data::read_bytes(folder / "apart.csv"), "apart.csv");
  CHECK(apart_table.rows != table.rows);
  CHECK_THAT(error_of(with({"--questions", path("questions.txt"), "--carry", "some"}), 2),
             ContainsSubstring("--carry: must be detached or none, got 'some'"));

  CHECK_THAT(error_of(with({"--questions", path("damaged.txt")}), 1),
             ContainsSubstring("numbered 1 to 21") && ContainsSubstring("block 2") &&
                 ContainsSubstring("damaged.txt") && ContainsSubstring("--lenient"));
  const nlohmann::json both =
      json_of(with({"--questions", path("questions.txt"), path("damaged.txt"), "--lenient", "--score", "word"}));
  CHECK(both.at("score") == "word");
  CHECK(both.at("files")[1].at("questions") == 2);
  CHECK(both.at("files")[1].at("left_out").size() == 1);
  CHECK(both.at("files")[1].at("left_out").begin().value() == 2);
  CHECK(both.at("files")[0].at("left_out").empty());
  CHECK(both.at("all").at("questions") == 13);

  const ProcessResult shown = run_engram({"cbt", path("run"), "--data", path("data"), "--lenient", "--questions",
                                          path("questions.txt"), path("damaged.txt")});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.out, ContainsSubstring("the whole sentence") && ContainsSubstring("tie-aware") &&
                            ContainsSubstring("\nall ") &&
                            ContainsSubstring("damaged.txt: 2 blocks left out: the lines of a block"));
  put_file(folder / "empty.txt", "\n");
  CHECK_THAT(error_of(with({"--questions", path("empty.txt")}), 1), ContainsSubstring("a question to answer"));
}

TEST_CASE("cbt command: scores of another program", "[cbt][night]") {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  put_file(folder / "one.txt", block(1, 3, 2) + block(2, 0, 0));
  put_file(folder / "two.txt", block(3, 9, 1));
  const Arguments questions{"--questions", path("one.txt"), path("two.txt")};
  const auto with = [&](Arguments all) {
    all.insert(all.begin(), "cbt");
    all.insert(all.end(), questions.begin(), questions.end());
    return all;
  };
  const ProcessResult written = run_engram(with({"--sentences", path("sentences.txt")}));
  INFO(written.err);
  REQUIRE(written.exit_code == 0);
  CHECK_THAT(written.out, ContainsSubstring("3 questions, 10 lines each"));
  const std::string sentences = data::read_bytes(folder / "sentences.txt");
  CHECK(std::ranges::count(sentences, '\n') == 30);
  CHECK(sentences.find("XXXXX") == sentences.npos);
  // The fifth candidate of every question is "Zorro".
  std::istringstream lines(sentences);
  std::string line;
  for (int i = 0; std::getline(lines, line); ++i) CHECK((line.find("Zorro") != line.npos) == (i % 10 == 4));

  // The first is answered rightly, the second is among two that tie, the third is wrong.
  std::string scores;
  for (int question = 0; question < 3; ++question)
    for (int candidate = 0; candidate < 10; ++candidate)
      scores += question == 0   ? (candidate == 3 ? "-1.5\n" : "-2\n")
                : question == 1 ? (candidate == 0 || candidate == 5 ? " -7e0\r\n" : "-inf\n")
                                : (candidate == 1 ? "0\n" : "-0.5\n");
  put_file(folder / "scores.txt", scores);
  const nlohmann::json report =
      json_of(with({"--scores", path("scores.txt"), "--csv", path("candidates.csv"), "--json"}));
  CHECK(report.at("scores") == path("scores.txt"));
  CHECK_FALSE(report.contains("checkpoint"));
  CHECK(report.at("files")[0].at("correct") == 2);
  CHECK(report.at("files")[0].at("ties") == 1);
  CHECK(report.at("files")[0].at("tie_aware_accuracy") == 0.75);
  CHECK(report.at("files")[1].at("correct") == 0);
  CHECK(report.at("all").at("questions") == 3);
  CHECK(parse_csv(data::read_bytes(folder / "candidates.csv"), "candidates.csv").rows.size() == 30);
  CHECK_THAT(run_engram(with({"--scores", path("scores.txt")})).out, ContainsSubstring("ranked by the scores of"));

  put_file(folder / "few.txt", scores.substr(0, scores.size() - 5));
  CHECK_THAT(error_of(with({"--scores", path("few.txt")}), 1), ContainsSubstring("ends after line 29"));
  put_file(folder / "many.txt", scores + "-1\n");
  CHECK_THAT(error_of(with({"--scores", path("many.txt")}), 1), ContainsSubstring("line 30, has more"));
  for (const char* wrong : {"nan", "inf", "-1 2", "Total:", ""}) {
    put_file(folder / "wrong.txt", std::string(wrong) + "\n" + scores);
    CHECK_THAT(error_of(with({"--scores", path("wrong.txt")}), 1),
               ContainsSubstring("line 1 of") && ContainsSubstring("got '" + std::string(wrong) + "'"));
  }
  CHECK_THAT(error_of(with({path("run"), "--scores", path("scores.txt")}), 2), ContainsSubstring("without a run"));
  // What has no effect without a model is refused by its name.
  const std::vector<Arguments> of_models{{"--score", "word"}, {"--carry", "none"}, {"--batch", "3"},  {"--best"},
                                         {"--device", "cpu"}, {"--dtype", "f64"},  {"--threads", "1"}};
  for (const Arguments& option : of_models)
    for (const Arguments& way : {Arguments{"--scores", path("scores.txt")}, {"--sentences", path("again.txt")}}) {
      Arguments all = way;
      all.insert(all.end(), option.begin(), option.end());
      CHECK_THAT(error_of(with(all), 2), StartsWith("engram: error: cbt: " + option[0] + " is for a model's answers") &&
                                             ContainsSubstring("got it with " + way[0]));
    }
  CHECK_THAT(error_of(with({"--sentences", path("again.txt"), "--csv", path("more.csv")}), 2),
             ContainsSubstring("--csv is for candidates with scores"));
  CHECK_FALSE(std::filesystem::exists(path("again.txt")));
  CHECK_THAT(error_of(with({}), 2), ContainsSubstring("got no run"));
  CHECK_THAT(error_of(with({path("run")}), 2), ContainsSubstring("got no --data"));
}

TEST_CASE("cbt command: models of other families are refused", "[cbt]") {
  const CbtFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  put_file(folder / "config.toml", small_config());
  const ProcessResult trained =
      run_engram({"train", "--config", path("config.toml"), "--data", path("data"), "--out", path("run"), "--set",
                  "schedule.steps=1", "--set", "training.batch=2", "--set", "training.block=10"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  put_file(folder / "questions.txt", question_file(3));
  CHECK_THAT(error_of({"cbt", path("run"), "--data", path("data"), "--questions", path("questions.txt")}, 2),
             ContainsSubstring("of family recurrent, got one of family all_attention"));
}

}  // namespace engram::harness::cbt_command_test
