/// Answering the questions of the Children's Book Test: questions as tokens, what candidates score, ties, and the
/// command with a file that is in order and one that is not.

#include <array>
#include <cmath>
#include <tuple>

#include "apps/cbt/question_results.hpp"
#include "apps/cbt/question_scores.hpp"
#include "apps/cbt/question_tokens.hpp"
#include "apps/data/prepare.hpp"
#include "apps/data/read_file.hpp"
#include "apps/tables/csv_table.hpp"
#include "apps/training/trained_model.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/command_results.hpp"
#include "tests/apps/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::cbt_test {
namespace {

constexpr std::int64_t kWords = 40;
std::string word(std::int64_t i) { return text("w", i); }

/// A sentence of some words, and one of them a number.
std::string sentence(reference::RandomArrays& random, std::int64_t words) {
  std::string line;
  for (std::int64_t i = 0; i < words; ++i) line += word(random.below(kWords)) + " ";
  return line + "19 .";
}

std::string book(std::uint64_t seed, int lines) {
  reference::RandomArrays random(seed);
  std::string text = "_BOOK_TITLE_ : A book\n";
  // All words once, however short the book is.
  for (std::int64_t i = 0; i < kWords; ++i) text += word(i) + " ";
  for (int line = 0; line < lines; ++line) text += "\n" + sentence(random, 1 + random.below(8));
  return text + "\n";
}

/// A block of the questions' format. The blank is the last word of the query where `tail` is 0.
std::string block(std::uint64_t seed, std::size_t answer, std::int64_t tail) {
  reference::RandomArrays random(seed);
  std::string text;
  for (int i = 1; i <= 20; ++i) text += engram::text(i, " ", sentence(random, random.below(6)), "\n");
  text += "21 ";
  for (std::int64_t i = random.below(4); i > 0; --i) text += word(random.below(kWords)) + " ";
  text += "XXXXX";
  for (std::int64_t i = 0; i < tail; ++i) text += " " + word(random.below(kWords));
  std::string candidates;
  for (std::size_t i = 0; i < 10; ++i) {
    // Two that no book has.
    const std::string candidate = i == 4 ? "Zorro" : i == 7 ? "zebra" : word(static_cast<std::int64_t>(3 * i));
    if (i == answer) text += "\t" + candidate + "\t\t";
    candidates += (i > 0 ? "|" : "") + candidate;
  }
  return text + candidates + "\n\n";
}

/// Questions of several lengths, with the blank in several places.
std::string question_file(std::int64_t tails) {
  std::string text;
  for (std::size_t i = 0; i < 11; ++i) text += block(100 + i, i % 10, tails > 0 ? std::int64_t(i) % tails : 0);
  return text;
}

struct CbtFolder : TemporaryFolder {
  explicit CbtFolder(bool sentence_end = true) {
    data::PrepareOptions options;
    options.kind = data::TokenKind::word;
    options.articles.emplace();
    options.articles->format = data::ArticleFormat::cbt;
    options.articles->sentence_end = sentence_end;
    options.train = put_file(*this / "train.txt", book(1, 60));
    options.valid = put_file(*this / "valid.txt", book(2, 20));
    options.test = put_file(*this / "test.txt", book(3, 20));
    options.out = *this / "data";
    data::prepare(options);
  }
  data::DataSet data() const { return data::DataSet::open(*this / "data"); }

  std::vector<TokenQuestion> questions(std::int64_t tails) const {
    const data::DataSet set = data();
    const QuestionTokens tokens_of(set);
    data::CbtReader reader(put_file(*this / "questions.txt", question_file(tails)));
    std::vector<TokenQuestion> all;
    for (data::CbtQuestion question; reader.next(question);) all.push_back(tokens_of(question));
    return all;
  }
};

/// A model as it starts, with weights large enough that all words and positions matter.
struct QuestionBench {
  /// Of models that depend on blocks; short and odd, so that questions have many and end anywhere in one.
  static constexpr std::int64_t kBlock = 7;
  Runtime runtime{{}, 1};
  ParameterStore store;
  RecurrentModel model;

  QuestionBench(RecurrentCell encoder, ReadoutKind readout, std::int64_t vocabulary, bool carries = true)
      : model({.vocabulary = vocabulary,
               .embedding_width = 5,
               .width = 12,
               .encoder = encoder,
               .order = 3,
               .readout = readout,
               .window = 4,
               .parts = readout == ReadoutKind::n_gram ? 3 : 1,
               .carry_evaluation = carries,
               .init_range = 0.6}) {
    collect(model, store);
    store.place(runtime.backend(), DType::f64, 7);
  }
  std::vector<CandidateScores> scores(const std::vector<TokenQuestion>& questions,
                                      CandidateScore score = CandidateScore::whole, std::int64_t batch = 4) {
    QuestionScorer scorer(model, runtime, DType::f64, score, batch, kBlock);
    return scorer(questions);
  }
  void zero(const std::string& name) {
    const Tensor& tensor = store.find(name)->value();
    const std::vector<double> zeros(static_cast<std::size_t>(tensor.count()));
    runtime.backend().copy(tensor.raw(), zeros.data(), tensor.bytes(), CopyKind::host_to_device);
  }

  /// ln p of the filled-in query from the blank on, one stream that reads it in blocks: [0] of the candidate, [1] of
  /// the candidate and all that follows.
  std::array<double, 2> full_reading(const TokenQuestion& question, std::size_t candidate, std::int64_t most) {
    std::vector<std::int32_t> tokens = question.prefix;
    tokens.push_back(question.candidates.at(candidate));
    tokens.insert(tokens.end(), question.suffix.begin(), question.suffix.end());
    const std::int64_t length = std::ssize(tokens) - 1;
    ModelPast past = model.frozen_past(runtime.backend(), runtime.memory(), 1, DType::f64, most);
    BlockTensors block;
    std::vector<double> all;
    for (std::int64_t first = 0; first < length; first += most) {
      const std::int64_t columns = std::min(most, length - first);
      block.write({.inputs = std::span<const std::int32_t>(tokens).subspan(static_cast<std::size_t>(first),
                                                                           static_cast<std::size_t>(columns)),
                   .targets = {},
                   .length = columns},
                  1, nullptr, runtime.backend(), runtime.memory());
      runtime.step().begin({});
      {
        Tape tape(runtime.step(), Tape::Mode::inference);
        const auto of_block = model.tokens().log_probabilities(model.hidden(tape, block.piece(0), past));
        all.insert(all.end(), of_block.begin(), of_block.end());
      }
      runtime.arena().end_step();
    }
    std::array<double, 2> sums{};
    for (std::size_t at = question.prefix.size(); at < tokens.size(); ++at) {
      const double found =
          all[(at - 1) * static_cast<std::size_t>(model.options().vocabulary) + static_cast<std::size_t>(tokens[at])];
      if (at == question.prefix.size()) sums[0] = found;
      sums[1] += found;
    }
    return sums;
  }
};

}  // namespace

TEST_CASE("cbt questions: tokens as the articles were read", "[cbt]") {
  const CbtFolder folder;
  const data::DataSet data = folder.data();
  const data::WordVocabulary& words = *data.vocabulary().words();
  data::CbtQuestion question;
  question.sentences[0] = {"w1", "1,999", "never"};
  question.query = {"w2", "XXXXX", "w3", "W3", "."};
  question.blank = 1;
  for (std::size_t i = 0; i < 10; ++i) question.candidates.at(i) = word(std::int64_t(i));
  question.candidates[2] = "nobody";
  question.answer_index = 2;
  const TokenQuestion tokens = QuestionTokens(data)(question);

  const std::int32_t end = words.id_of("</s>"), unknown = words.id_of("UNK");
  std::vector<std::int32_t> prefix{end, words.id_of("w1"), words.id_of("N"), unknown};
  prefix.insert(prefix.end(), 20, end);
  prefix.push_back(words.id_of("w2"));
  CHECK(tokens.prefix == prefix);
  CHECK(tokens.suffix == std::vector<std::int32_t>{words.id_of("w3"), unknown, words.id_of("."), end});
  CHECK(tokens.candidates[1] == words.id_of("w1"));
  CHECK(tokens.candidates[2] == unknown);
  CHECK(tokens.answer == 2);
  CHECK(tokens.words == 7);
  CHECK(tokens.unknown_words == 2);
  CHECK(tokens.unknown_candidates == 1);
  CHECK(tokens.unknown_answer);

  const CbtFolder without(false);
  const TokenQuestion open = QuestionTokens(without.data())(question);
  CHECK(open.prefix.size() == 5);
  CHECK(open.suffix.size() == 3);
  const RunFolder flat(2000, 1, data::TokenKind::word);
  const data::DataSet no_articles = data::DataSet::open(flat.data());
  CHECK_THAT(message_of<UsageError>([&] { QuestionTokens tokens_of(no_articles); }),
             ContainsSubstring("--data must be of articles"));
}

TEST_CASE("cbt scores: those of ten readings of the filled-in text", "[cbt]") {
  const CbtFolder folder;
  const std::vector<TokenQuestion> questions = folder.questions(6);
  REQUIRE(questions.size() == 11);
  const std::int64_t vocabulary = folder.data().vocabulary().size();
  using enum ReadoutKind;
  for (const auto& [encoder, readout, carries] : {std::tuple(RecurrentCell::lstm, key_value_predict, true),
                                                  {RecurrentCell::lstm, key_value_predict, false},
                                                  {RecurrentCell::lstm, recurrent_memory, true},
                                                  {RecurrentCell::lstm, recurrent_memory, false},
                                                  {RecurrentCell::hornn_gated, identity, true},
                                                  {RecurrentCell::rnn, n_gram, true},
                                                  {RecurrentCell::rnn, n_gram, false}}) {
    CAPTURE(name_of(readout), carries);
    QuestionBench bench(encoder, readout, vocabulary, carries);
    // What a model that carries reads does not depend on blocks.
    const std::int64_t block = carries ? 1000 : QuestionBench::kBlock;
    // Streams that are padded in front, a batch that is not full, and one of all.
    for (const std::int64_t batch : {1, 4, 100}) {
      const auto whole = bench.scores(questions, CandidateScore::whole, batch);
      const auto alone = bench.scores(questions, CandidateScore::word, batch);
      for (std::size_t i = 0; i < questions.size(); ++i)
        for (std::size_t candidate = 0; candidate < 10; ++candidate) {
          const auto [of_word, of_all] = bench.full_reading(questions[i], candidate, block);
          CHECK(whole[i].at(candidate) == Approx(of_all).epsilon(1e-10));
          CHECK(alone[i].at(candidate) == Approx(of_word).epsilon(1e-10));
        }
      // What the vocabulary lacks is one word.
      for (const CandidateScores& scores : whole) CHECK(scores[4] == scores[7]);
    }
  }
}

TEST_CASE("cbt scores: word and whole agree where the blank is last and no end follows", "[cbt]") {
  const CbtFolder folder(false);
  const std::vector<TokenQuestion> questions = folder.questions(0);
  QuestionBench bench(RecurrentCell::lstm, ReadoutKind::key_value, folder.data().vocabulary().size());
  CHECK(bench.scores(questions, CandidateScore::whole) == bench.scores(questions, CandidateScore::word));
  const CbtFolder ends(true);
  const std::vector<TokenQuestion> ended = ends.questions(0);
  CHECK(bench.scores(ended, CandidateScore::whole) != bench.scores(ended, CandidateScore::word));
}

TEST_CASE("cbt results: a model without opinion ties on all ten", "[cbt]") {
  const CbtFolder folder;
  const std::vector<TokenQuestion> questions = folder.questions(6);
  QuestionBench bench(RecurrentCell::lstm, ReadoutKind::key_value_predict, folder.data().vocabulary().size());
  bench.zero("output.weight");
  bench.zero("output.bias");
  QuestionResults results;
  const auto scores = bench.scores(questions);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const BestCandidates best(scores[i]);
    CHECK(best.first == 0);
    CHECK(best.count == 10);
    CHECK(scores[i][0] ==
          Approx(-double(questions[i].suffix.size() + 1) * std::log(double(bench.model.options().vocabulary))));
    results.add(questions[i], scores[i]);
    CHECK(results.tie_aware_accuracy() == 0.10);
  }
  CHECK(results.ties == 11);
  CHECK(results.correct == 2);  // answers 0 to 9, and 0 once more
  CHECK(results.accuracy() == 2.0 / 11);
  CHECK(results.unknown_candidates == 22);
  CHECK(results.unknown_answers == 2);
}

TEST_CASE("cbt results: credit for ties", "[cbt]") {
  TokenQuestion question;
  question.answer = 3;
  QuestionResults results;
  results.add(question, {-5, -1, -2, -1, -1, -9, -9, -9, -9, -9});  // one of three, and not the first
  CHECK(results.correct == 0);
  CHECK(results.ties == 1);
  CHECK(results.tie_aware_accuracy() == Approx(1.0 / 3));
  results.add(question, {-5, -4, -4, -1, -2, -9, -9, -9, -9, -9});
  results.add(question, {-1, -1, -4, -3, -2, -9, -9, -9, -9, -9});  // a tie of others
  CHECK(results.correct == 1);
  CHECK(results.ties == 2);
  CHECK(results.accuracy() == Approx(1.0 / 3));
  CHECK(results.tie_aware_accuracy() == Approx(4.0 / 9));
}

TEST_CASE("cbt command: accuracies by file and in all, strict and lenient", "[cbt]") {
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
  QuestionScorer scorer(dynamic_cast<RecurrentModel&>(model.model()), runtime, DType::f64, CandidateScore::whole, 32,
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
             ContainsSubstring("--carry must be detached or none, got 'some'"));

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

}  // namespace engram::harness::cbt_test
