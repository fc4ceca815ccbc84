#include "tests/exercises/checks/exercise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

namespace engram::exercises {
namespace {

bool same(double a, double b, double allowed) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= allowed;
}

double allowed_of(const Part& truth) {
  double largest = 1;
  for (const double number : truth.numbers)
    if (std::isfinite(number)) largest = std::max(largest, std::abs(number));
  return truth.tolerance * largest;
}

bool right(const Part& got, const Part& truth) {
  if (got.numbers.size() != truth.numbers.size()) return false;
  for (std::size_t i = 0; i < got.numbers.size(); ++i) {
    if (truth.at_most ? !(got.numbers[i] <= truth.numbers[i])
                      : !same(got.numbers[i], truth.numbers[i], allowed_of(truth)))
      return false;
  }
  return true;
}

/// The same numbers, where the truth says what counts as the same.
bool alike(const Part& a, const Part& b, const Part& truth) {
  if (a.numbers.size() != b.numbers.size()) return false;
  for (std::size_t i = 0; i < a.numbers.size(); ++i)
    if (!same(a.numbers[i], b.numbers[i], allowed_of(truth))) return false;
  return true;
}

/// Every number is `factor` times what it should be; empty where that does not hold.
std::optional<double> common_factor(const Part& got, const Part& truth) {
  const auto largest = std::ranges::max_element(truth.numbers, {}, [](double x) { return std::abs(x); });
  if (largest == truth.numbers.end() || std::abs(*largest) < 1e-3) return std::nullopt;
  const double factor = got.numbers[static_cast<std::size_t>(largest - truth.numbers.begin())] / *largest;
  if (!std::isfinite(factor)) return std::nullopt;
  for (std::size_t i = 0; i < got.numbers.size(); ++i)
    if (!same(got.numbers[i], factor * truth.numbers[i], allowed_of(truth) * std::max(1.0, std::abs(factor))))
      return std::nullopt;
  return factor;
}

bool is_transposed(const Part& got, const Part& truth) {
  const std::size_t n = truth.columns;
  if (n < 2 || truth.numbers.size() != n * n) return false;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      if (!same(got.numbers[i * n + j], truth.numbers[j * n + i], allowed_of(truth))) return false;
  return true;
}

std::string place_of(const Part& part, std::size_t i) {
  return part.columns == 0 ? fmt::format("[{}]", i) : fmt::format("({}, {})", i / part.columns, i % part.columns);
}

/// What the numbers alone say.
std::string general_hint(const Part& got, const Part& truth) {
  if (got.numbers.size() != truth.numbers.size() || truth.at_most) return {};
  if (std::ranges::any_of(got.numbers, [](double x) { return std::isnan(x); }) &&
      std::ranges::none_of(truth.numbers, [](double x) { return std::isnan(x); }))
    return "there is a nan. The memory of results holds nan before you write it: was every element written, and "
           "nothing added to what was there? Else look for 0 / 0 or infinity - infinity.";
  if (std::ranges::any_of(got.numbers, [](double x) { return std::isinf(x); }))
    return "there is an infinity. Does an exponential of a large number overflow, or is something divided by 0?";
  if (std::ranges::all_of(got.numbers, [](double x) { return x == 0; })) return "every number is 0.";
  if (is_transposed(got, truth)) return "this is the right matrix, transposed.";
  if (const std::optional<double> factor = common_factor(got, truth)) {
    if (std::abs(*factor + 1) < 1e-6) return "every number has the opposite sign.";
    return fmt::format("every number is {:.4g} times what it should be.", *factor);
  }
  return {};
}

std::string what_is_wrong(const Part& got, const Part& truth) {
  if (got.numbers.size() != truth.numbers.size())
    return fmt::format("{}: must be {} numbers, got {}", got.name, truth.numbers.size(), got.numbers.size());
  for (std::size_t i = 0; i < got.numbers.size(); ++i) {
    if (truth.at_most && !(got.numbers[i] <= truth.numbers[i]))
      return fmt::format("{}: must be at most {:.6g}, got {:.6g}", got.name, truth.numbers[i], got.numbers[i]);
    if (truth.at_most || same(got.numbers[i], truth.numbers[i], allowed_of(truth))) continue;
    return fmt::format("{}{}: must be {:.6g}, got {:.6g}", got.name,
                       got.numbers.size() == 1 ? "" : ", at " + place_of(truth, i), truth.numbers[i], got.numbers[i]);
  }
  return got.name;
}

/// Up to the first number or place, which differ from one call to the next.
std::string kind_of(const std::string& error) { return error.substr(0, error.find_first_of("0123456789(")); }

/// How many parts a known mistake explains, from the first wrong one on; 0: not that one. Behind the last part lies
/// what was thrown.
std::size_t explained(const Outcome& answer, const Outcome& mistake, const Outcome& truth, std::size_t first_wrong) {
  std::size_t count = 0;
  for (std::size_t i = first_wrong; i < answer.parts.size(); ++i) {
    const bool same_part = i < mistake.parts.size() && alike(answer.parts[i], mistake.parts[i], truth.parts[i]) &&
                           (i > first_wrong || !right(mistake.parts[i], truth.parts[i]));
    if (!same_part && i == first_wrong) return 0;
    count += same_part ? 1 : 0;
  }
  const bool same_end = answer.parts.size() == mistake.parts.size() && kind_of(answer.error) == kind_of(mistake.error);
  return count + (same_end ? 1 : 0);
}

std::string known_hint(const Outcome& answer, const Outcome& truth, std::size_t first_wrong,
                       const std::vector<KnownMistake>& mistakes) {
  std::string hint;
  std::size_t most = 0;
  for (const KnownMistake& mistake : mistakes) {
    const std::size_t count = explained(answer, mistake.outcome, truth, first_wrong);
    if (count <= most) continue;
    most = count;
    hint = mistake.hint;
  }
  return hint;
}

std::string or_else(std::string hint, std::string_view other) { return hint.empty() ? std::string(other) : hint; }

}  // namespace

std::string text_of(const NotWritten& place) {
  const std::string file = place.file;
  const std::size_t begin = file.rfind("tests/exercises/");
  return fmt::format("{}:{}", begin == file.npos ? file : file.substr(begin), place.line);
}

Finding judge(const Outcome& answer, const Outcome& truth, const std::function<std::vector<KnownMistake>()>& mistakes) {
  for (std::size_t i = 0; i < answer.parts.size(); ++i) {
    if (right(answer.parts[i], truth.parts[i])) continue;
    std::string hint = known_hint(answer, truth, i, mistakes());
    if (hint.empty()) hint = general_hint(answer.parts[i], truth.parts[i]);
    if (hint.empty()) hint = truth.parts[i].hint;
    return {Finding::State::wrong, what_is_wrong(answer.parts[i], truth.parts[i]), hint};
  }
  const std::size_t done = answer.parts.size();
  const std::string so_far = done == 0 ? "" : fmt::format(" ({} of {} parts are right)", done, truth.parts.size());
  if (!answer.not_written.empty()) return {Finding::State::not_written, answer.not_written + so_far, {}};
  if (!answer.error.empty())
    return {
        Finding::State::wrong,
        fmt::format("{}: it threw \"{}\"", done < truth.parts.size() ? truth.parts[done].name : "at its end",
                    answer.error),
        or_else(known_hint(answer, truth, done, mistakes()),
                "nothing was computed here: what the message names was asked of something that is not there, or no "
                "longer. A value that has been moved from is empty: what a node keeps of it must be taken before, and "
                "what is moved must not be what is kept.")};
  return {};
}

}  // namespace engram::exercises
