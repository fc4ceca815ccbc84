#pragma once
/// What a check is made of. An answer is run on some inputs, the truth (mostly numeric differences) on the same, and
/// their numbers are compared, part by part. If they differ, the answer is compared with known mistakes, which are
/// answers too: the one that gives the same wrong numbers has a hint.

#include <cstddef>
#include <exception>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/exercises/your_code_here.hpp"

namespace engram::exercises {

/// What the memory of results holds before an answer writes it.
constexpr double kUnwritten = std::numeric_limits<double>::quiet_NaN();

/// Numbers that an answer computed.
struct Part {
  std::string name;  ///< what they are, and of which inputs
  std::vector<double> numbers;
  std::size_t columns = 0;  ///< of a matrix, 0: a single row
  std::string hint = {};    ///< for a wrong part that no known mistake explains
  bool at_most = false;     ///< the truth is a bound, not what the numbers must equal
  double tolerance = 1e-7;  ///< of the largest of the true numbers, or of 1 where all are smaller
};

/// What an answer did, part by part, until it threw.
struct Outcome {
  std::vector<Part> parts;
  std::string error;        ///< what it threw; empty: nothing
  std::string not_written;  ///< FILE:LINE of the first your_code_here() that it met
};

/// An answer that is often given, what it does, and what is said to who gives it.
struct KnownMistake {
  Outcome outcome;
  std::string hint;
};

struct Finding {
  enum class State { right, wrong, not_written };
  State state = State::right;
  std::string what;  ///< a line that says what is wrong, or where code is missing
  std::string hint;  ///< empty: none
};

/// The first wrong part decides. `mistakes` is asked only when there is one.
Finding judge(const Outcome& answer, const Outcome& truth, const std::function<std::vector<KnownMistake>()>& mistakes);

/// FILE:LINE from the root of the tree.
std::string text_of(const NotWritten& place);

/// One exercise, for programs: its number, its files' name, its title.
struct Check {
  int number = 0;
  std::string name;  ///< 01_softmax: of tests/exercises/01_softmax.cpp and docs/exercises/01_softmax.md
  std::string title;
  std::function<Finding()> of_answer;              ///< of the answer that is linked: the learner's, or the solution
  std::vector<std::string> hints;                  ///< of the known mistakes
  std::function<Finding(std::size_t)> of_mistake;  ///< as if the known mistake of this index were the answer
};

/// An answer is a struct of functions.
template <class Answer>
struct Mistake {
  Answer answer;
  std::string hint;
};

template <class Answer>
struct Exercise {
  Answer answer, truth;
  std::vector<Mistake<Answer>> mistakes;
  /// Calls the answer on inputs and appends what it computed. It may throw whatever the answer throws.
  std::function<void(const Answer&, std::vector<Part>&)> run;

  Outcome outcome_of(const Answer& given) const {
    Outcome outcome;
    try {
      run(given, outcome.parts);
    } catch (const NotWritten& missing) {
      outcome.not_written = text_of(missing);
    } catch (const std::exception& error) {
      outcome.error = error.what();
    }
    return outcome;
  }
  Finding finding_of(const Answer& given) const {
    return judge(outcome_of(given), outcome_of(truth), [this] {
      std::vector<KnownMistake> known;
      for (const Mistake<Answer>& mistake : mistakes) known.push_back({outcome_of(mistake.answer), mistake.hint});
      return known;
    });
  }
};

template <class Answer>
Check make_check(int number, std::string name, std::string title, Exercise<Answer> exercise) {
  Check check{.number = number, .name = std::move(name), .title = std::move(title)};
  for (const Mistake<Answer>& mistake : exercise.mistakes) check.hints.push_back(mistake.hint);
  check.of_answer = [exercise] { return exercise.finding_of(exercise.answer); };
  check.of_mistake = [exercise](std::size_t i) { return exercise.finding_of(exercise.mistakes.at(i).answer); };
  return check;
}

/// All exercises of this program, in the order of their numbers.
std::vector<Check> all_checks();

}  // namespace engram::exercises
