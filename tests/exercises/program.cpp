/// Checks exercises: `exercises`, all of them, or `exercises NUMBER...`. Ends with 0 when all that it looked at are
/// right, with 1 when one is not, with 2 for a wrong call.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/exercises/checks/exercise.hpp"

namespace engram::exercises {
namespace {

/// In lines of 80 columns, each after the first behind `indent` blanks.
std::string wrapped(const std::string& text, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    if (column > indent && column + 1 + end - at > 80) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      lines += ' ';
      ++column;
    }
    lines += text.substr(at, end - at);
    column += end - at;
    at = end + 1;
  }
  return lines;
}

/// Says what was found; true if all is right.
bool tell(const Check& check) {
  fmt::print("{:2}  {}: ", check.number, check.title);
  std::fflush(stdout);  // an answer may end the program, by an index outside of a span
  const Finding finding = check.of_answer();
  const auto line = [](std::string_view label, const std::string& text) {
    fmt::print("  {:7}{}\n", label, wrapped(text, 9));
  };
  switch (finding.state) {
    case Finding::State::right:
      fmt::print("right\n");
      return true;
    case Finding::State::not_written:
      fmt::print("to be written\n");
      line("where", finding.what);
      line("next", "read the page, then put your code in place of that line");
      break;
    case Finding::State::wrong:
      fmt::print("wrong\n");
      line("what", finding.what);
      line("hint", finding.hint.empty()
                       ? "none of the known mistakes gives these numbers. Work the first wrong one out "
                         "by hand, with the formulas of the page."
                       : finding.hint);
      break;
  }
  line("page", fmt::format("docs/exercises/{}.md", check.name));
  return false;
}

int run(const std::vector<std::string>& arguments) {
  std::vector<Check> checks = all_checks();
  std::vector<int> numbers;
  for (const std::string& argument : arguments) {
    int number = 0;
    const auto [end, error] = std::from_chars(argument.data(), argument.data() + argument.size(), number);
    if (error != std::errc{} || end != argument.data() + argument.size() ||
        std::ranges::find(checks, number, &Check::number) == checks.end()) {
      fmt::print(stderr, "exercises: an exercise must be a number from 1 to {}, got '{}'\n", checks.back().number,
                 argument);
      return 2;
    }
    numbers.push_back(number);
  }
  if (!numbers.empty())
    std::erase_if(checks, [&](const Check& check) { return std::ranges::count(numbers, check.number) == 0; });
  std::size_t right = 0;
  for (const Check& check : checks) right += tell(check) ? 1 : 0;
  if (checks.size() > 1) fmt::print("{} of {} exercises are right\n", right, checks.size());
  return right == checks.size() ? 0 : 1;
}

}  // namespace
}  // namespace engram::exercises

int main(int argc, char** argv) {
  // libstdc++ has told which index was outside of what. Where, a debugger says; what to think of, this.
  std::signal(SIGABRT, [](int) {
    constexpr std::string_view hint =
        "  hint   the answer used an index outside of a vector or a span. A place that\n"
        "         nobody wants is empty; a loop over one row may run over another's end.\n";
    static_cast<void>(!write(STDOUT_FILENO, hint.data(), hint.size()));
    _exit(1);
  });
  return engram::exercises::run({argv + 1, argv + argc});
}
