#include "tests/exercises/05_set_and_add.hpp"

#include <utility>

#include "tests/exercises/checks/all.hpp"
#include "tests/exercises/checks/differences.hpp"

namespace engram::exercises::check_05 {
namespace {

using Row = std::span<const double>;
struct Answer {
  std::function<void(Row a, Row b, Row dy, const GradientPlace& da, const GradientPlace& db)> backward;
  std::function<Write(std::vector<bool>&, int)> word;
};

void give_rule(const GradientPlace& place, Row factor, Row dy, Write write) {
  for (std::size_t i = 0; i < place.numbers.size(); ++i) {
    const double before = write == Write::add ? place.numbers[i] : 0;
    place.numbers[i] = before + factor[i] * dy[i];
  }
}

Write right_word(std::vector<bool>& begun, int variable) {
  const bool before = begun.at(std::size_t(variable));
  begun.at(std::size_t(variable)) = true;
  return before ? Write::add : Write::set;
}

/// Whose words are what `say` makes of those that it was given.
Answer with_words(const std::function<std::pair<Write, Write>(Write, Write)>& say) {
  return {[say](Row a, Row b, Row dy, const GradientPlace& da, const GradientPlace& db) {
            const auto [first, second] = say(da.write, db.write);
            give_rule(da, b, dy, first);
            give_rule(db, a, dy, second);
          },
          right_word};
}

Answer with_word(const std::function<Write(std::vector<bool>&, int)>& word) {
  Answer answer = with_words([](Write a, Write b) { return std::pair(a, b); });
  answer.word = word;
  return answer;
}

void run(const Answer& answer, std::vector<Part>& parts) {
  const std::vector<double> a = some_numbers(3, 7), b = some_numbers(3, 8), dy = some_numbers(3, 9);
  {
    std::vector<double> da(3, kUnwritten), db(3, kUnwritten);
    answer.backward(a, b, dy, {da, Write::set}, {db, Write::set});
    parts.push_back({"da, both words being set", da});
    parts.push_back({"db, both words being set", db});
  }
  {
    std::vector<double> da(3, 10), db(3, 20);
    answer.backward(a, b, dy, {da, Write::add}, {db, Write::add});
    parts.push_back({"da, both words being add, and every element 10 before", da});
    parts.push_back({"db, both words being add, and every element 20 before", db});
  }
  {
    std::vector<double> da(3, 10), db(3, kUnwritten);
    answer.backward(a, b, dy, {da, Write::add}, {db, Write::set});
    parts.push_back({"da, whose word is add (10 before), db's being set", da});
    parts.push_back({"db, whose word is set, da's being add", db});
  }
  {
    std::vector<double> both(3, kUnwritten);
    answer.backward(a, a, dy, {both, Write::set}, {both, Write::add});
    parts.push_back({"the gradient of a in y = a a: da says set, db says add, and both are one memory", both});
  }
  {
    std::vector<double> db(3, kUnwritten);
    answer.backward(a, b, dy, {}, {db, Write::set});
    parts.push_back({"db, where nobody wants da", db});
  }
  std::vector<bool> begun(3, false);
  std::vector<double> words;
  for (const int variable : {1, 2, 1, 1, 2, 0}) words.push_back(answer.word(begun, variable) == Write::add ? 1 : 0);
  parts.push_back({"words for the variables 1 2 1 1 2 0, set being 0 and add 1", words});
}

}  // namespace

Check check() {
  using enum Write;
  return make_check<Answer>(
      5, "05_set_and_add", "set and add: a variable that is used twice",
      {.answer = {multiply_backward, word_for},
       .truth = with_word(right_word),
       .mistakes =
           {{{[](Row a, Row b, Row dy, const GradientPlace& da, const GradientPlace& db) {
                if (da.numbers.empty() || db.numbers.empty()) return;
                give_rule(da, b, dy, da.write);
                give_rule(db, a, dy, db.write);
              },
              right_word},
             "da is empty there, so nobody wants it; db is wanted all the same. Ask each place on its own."},
            {{[](Row a, Row b, Row dy, const GradientPlace& da, const GradientPlace& db) {
                give_rule(da, a, dy, da.write);
                give_rule(db, b, dy, db.write);
              },
              right_word},
             "a and b are the wrong way round: the derivative of a b by a is b."},
            {with_words([](Write, Write) { return std::pair(set, set); }),
             "you set where the word is add: what other uses of the variable gave before is lost."},
            {with_words([](Write, Write) { return std::pair(add, add); }),
             "you add where the word is set: the memory holds anything before, here nan, and is to be replaced."},
            {with_words([](Write a, Write) { return std::pair(a, a); }),
             "you use the word of da for both. Each place has a word of its own."},
            {with_word([](std::vector<bool>&, int) { return set; }),
             "word_for always says set: a second contribution would wipe out the first."},
            {with_word(
                 [](std::vector<bool>& begun, int variable) { return right_word(begun, variable) == set ? add : set; }),
             "the words are the wrong way round: the first contribution finds memory that holds anything, and sets."},
            {with_word([](std::vector<bool>& begun, int variable) {
               begun.assign(begun.size(), begun.at(std::size_t(variable)));
               return right_word(begun, variable);
             }),
             "what was asked of one variable must not change what is said of another."}},
       .run = run});
}

}  // namespace engram::exercises::check_05
