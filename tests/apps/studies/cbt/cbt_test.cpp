/// Answering the questions of the Children's Book Test: questions as tokens, what candidates score, and ties.

#include <array>
#include <cmath>
#include <tuple>

#include "apps/studies/cbt/question_results.hpp"
#include "apps/studies/cbt/question_scores.hpp"
#include "apps/studies/cbt/question_tokens.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/studies/cbt/cbt_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::cbt_test {
namespace {

using namespace cbt;

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
    QuestionScorer scorer({model, runtime, DType::f64}, score, batch, kBlock);
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

TEST_CASE("cbt scores: those of ten readings of the filled-in text", "[cbt][night]") {
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

}  // namespace engram::harness::cbt_test
