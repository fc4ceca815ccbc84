/// `autograd_tour --trace OP`: what it prints of two operations, and for all of them that derivatives agree with
/// differences, that lines fit, and that no function of autograd is left out.

#include "apps/tour/trace/op_trace.hpp"

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "apps/tour/tour.hpp"
#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::tour::op_trace_test {
namespace {

constexpr const char* kMatmul =
    R"(matmul, f64 on cpu
  y = a b; da = dy b^T, db = a^T dy
  autograd/functions/matmul.cpp

forward
  a [2, 3]
      0.2600  -0.6100   0.1500
      1.4400  -0.3700   0.0700
  b [3, 2]
     -1.2800  -1.4900
     -0.4900  -1.4900
      1.0700  -1.3800
  y [2, 2], came out
      0.1266   0.3145
     -1.5870  -1.6909
  kernels: matmul
  on the tape: matmul
  kept for backward: matmul a [2, 3] 48 B, matmul b [3, 2] 48 B

backward
  dy [2, 2], came in
     -0.4300   0.3000
     -1.0900  -0.8100
  da [2, 3], set by matmul
      0.1034  -0.2363  -0.8741
      2.6021   1.7410  -0.0485
  db [3, 2], set by matmul
     -1.6814  -1.0884
      0.6656   0.1167
     -0.1408  -0.0117
  kernels: matmul, matmul

backward, with the operation twice on the tape
  da, set by matmul, added to by matmul
  db, set by matmul, added to by matmul

derivatives beside differences (f(x + h) - f(x - h)) / 2h, f being
the sum of what came out times what came in, h = 1e-5
                                    backward    difference    relative
  da [0, 0]                         0.103400      0.103400      < 1e-8
  da [0, 1]                        -0.236300     -0.236300      < 1e-8
  da [0, 2]                        -0.874100     -0.874100      < 1e-8
  da [1, 0]                         2.602100      2.602100      < 1e-8
  da [1, 1]                         1.741000      1.741000      < 1e-8
  da [1, 2]                        -0.048500     -0.048500      < 1e-8
  db [0, 0]                        -1.681400     -1.681400      < 1e-8
  db [0, 1]                        -1.088400     -1.088400      < 1e-8
  db [1, 0]                         0.665600      0.665600      < 1e-8
  db [1, 1]                         0.116700      0.116700      < 1e-8
  db [2, 0]                        -0.140800     -0.140800      < 1e-8
  db [2, 1]                        -0.011700     -0.011700      < 1e-8
  the worst of 12: < 1e-8
)";
constexpr const char* kAdd =
    R"(add, f64 on cpu
  y = a + b
  autograd/functions/add.cpp

forward
  a [2, 3]
      0.2600  -0.6100   0.1500
      1.4400  -0.3700   0.0700
  b [2, 3]
     -1.2800  -1.4900  -0.4900
     -1.4900   1.0700  -1.3800
  y [2, 3], came out
     -1.0200  -2.1000  -0.3400
     -0.0500   0.7000  -1.3100
  kernels: add
  on the tape: add
  kept for backward: nothing

backward
  dy [2, 3], came in
     -0.4300   0.3000  -1.0900
     -0.8100   0.1600  -0.2400
  da [2, 3], set by accumulate
     -0.4300   0.3000  -1.0900
     -0.8100   0.1600  -0.2400
  db [2, 3], handed over
     -0.4300   0.3000  -1.0900
     -0.8100   0.1600  -0.2400
  kernels: accumulate

backward, with the operation twice on the tape
  da, set by accumulate, added to by accumulate
  db, handed over, added to by accumulate

derivatives beside differences (f(x + h) - f(x - h)) / 2h, f being
the sum of what came out times what came in, h = 1e-5
                                    backward    difference    relative
  da [0, 0]                        -0.430000     -0.430000      < 1e-8
  da [0, 1]                         0.300000      0.300000      < 1e-8
  da [0, 2]                        -1.090000     -1.090000      < 1e-8
  da [1, 0]                        -0.810000     -0.810000      < 1e-8
  da [1, 1]                         0.160000      0.160000      < 1e-8
  da [1, 2]                        -0.240000     -0.240000      < 1e-8
  db [0, 0]                        -0.430000     -0.430000      < 1e-8
  db [0, 1]                         0.300000      0.300000      < 1e-8
  db [0, 2]                        -1.090000     -1.090000      < 1e-8
  db [1, 0]                        -0.810000     -0.810000      < 1e-8
  db [1, 1]                         0.160000      0.160000      < 1e-8
  db [1, 2]                        -0.240000     -0.240000      < 1e-8
  the worst of 12: < 1e-8
)";

struct Answer {
  int code;
  std::string out, errors;
};
Answer ask(const std::vector<std::string>& arguments) {
  std::ostringstream out, errors;
  const int code = run_tour(arguments, out, errors);
  return {code, out.str(), errors.str()};
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("trace: a product and a sum, every word", "[tour]") {
  CHECK(ask({"--trace", "matmul"}).out == kMatmul);
  CHECK(ask({"--trace", "add"}).out == kAdd);
}

TEST_CASE("trace: another device gives the same numbers", "[tour]") {
  std::string simulated;
  try {
    simulated = ask({"--trace", "softmax", "--device", "simulated"}).out;
  } catch (const NotAvailable&) {
    return;  // a build without it
  }
  CHECK(has(simulated, "f64 on simulated"));
  simulated.replace(simulated.find("simulated"), std::string("simulated").size(), "cpu");
  CHECK(simulated == ask({"--trace", "softmax"}).out);
}

TEST_CASE("trace: every derivative agrees with its difference, in lines that fit", "[tour]") {
  for (const OpExample& example : op_examples()) {
    INFO(example.name);
    const OpTrace trace = trace_op(example, {DeviceKind::cpu});
    std::int64_t elements = 0;
    for (const TracedGradient& gradient : trace.gradients) {
      INFO(gradient.tensor.name);
      elements += static_cast<std::int64_t>(gradient.elements.size());
      CHECK(static_cast<std::int64_t>(gradient.elements.size()) == gradient.tensor.shape.count());
      for (const CheckedElement& element : gradient.elements) CHECK(element.relative < 1e-6);
      CHECK_FALSE(gradient.writes.empty());
      // A second part is added: nothing else may touch what the first one left.
      if (!example.root) {
        REQUIRE(gradient.writes_twice.size() > gradient.writes.size());
        CHECK(gradient.writes_twice.back().kind == GradientWrite::Kind::added);
      }
    }
    CHECK(elements == trace.report.checked);
    CHECK(elements > 0);
    CHECK(trace.report.worst_relative < 1e-6);
    std::istringstream lines(trace_text(example, {DeviceKind::cpu}, trace));
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK(line.size() <= 80);
    }
  }
}

TEST_CASE("trace: a wrong derivative is seen", "[tour]") {
  OpExample wrong = op_example("softmax");
  // The value of softmax(2 x), with one of the two x held constant.
  wrong.function = [](std::span<Variable> x) {
    return std::vector{softmax(add(x[0], x[0].tape().constant(x[0].value())))};
  };
  CHECK(trace_op(wrong, {DeviceKind::cpu}).report.worst_relative > 0.1);
}

/// Names of the functions that a header declares.
std::set<std::string> functions_of(const std::string& path) {
  static const std::regex declared("^(Variable|[A-Z]\\w+) (\\w+)\\(.*");
  std::set<std::string> names;
  for (const std::string& line : source_tree::lines_of(std::string(ENGRAM_SOURCE_DIR) + "/" + path))
    if (std::smatch match; std::regex_match(line, match, declared)) names.insert(match[2]);
  return names;
}

TEST_CASE("trace: every function of autograd has an example", "[tour]") {
  static const std::regex include("#include \"(autograd/functions/(\\w+)\\.hpp)\"");
  std::size_t functions = 0;
  for (const std::string& line : source_tree::lines_of(std::string(ENGRAM_SOURCE_DIR) + "/autograd/functions.hpp")) {
    std::smatch match;
    if (!std::regex_match(line, match, include)) continue;
    for (const std::string& function : functions_of(match[1])) {
      INFO(function << " of " << match[1]);
      ++functions;
      CHECK(std::ranges::any_of(op_examples(), [&](const OpExample& example) {
        return example.source == match[2].str() && example.name.starts_with(function);
      }));
    }
  }
  CHECK(functions > 30);
  CHECK(std::ranges::adjacent_find(op_examples(), {}, &OpExample::name) == op_examples().end());
}

TEST_CASE("trace: names that are wrong, and the list", "[tour]") {
  const Answer wrong = ask({"--trace", "sofmax"});
  CHECK(wrong.code == 2);
  CHECK(wrong.out.empty());
  CHECK(wrong.errors ==
        "autograd_tour: --trace must name an operation, got 'sofmax'\n"
        "  the nearest is 'softmax'; --trace list has all of them\n");
  const Answer list = ask({"--trace", "list"});
  CHECK(list.code == 0);
  for (const OpExample& example : op_examples()) CHECK(has(list.out, std::string(example.name) + " "));
  CHECK(has(ask({"--help"}).out, "--trace OP"));
  CHECK(has(ask({"--trace"}).errors, "--trace must have a name, got nothing"));
  CHECK(has(ask({"--device", "cpu"}).errors, "--device is for --trace alone"));
  CHECK(has(ask({"--trace", "softmax", "--device", "abacus"}).errors, "abacus"));
  CHECK(has(ask({"--trace", "softmax", "3"}).errors, "--trace takes one operation and nothing else, got '3'"));
  CHECK(ask({"--trace", "softmax", "3"}).code == 2);
}

}  // namespace
}  // namespace engram::tour::op_trace_test
