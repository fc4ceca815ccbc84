#include "apps/tour/tour.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <array>
#include <optional>

#include "apps/tour/trace/op_examples.hpp"
#include "apps/tour/trace/op_trace.hpp"
#include "core/error.hpp"

namespace engram::tour {
namespace {

constexpr std::array kSteps{
    TourStep{"A tape of scalars", scalar_tape},
    TourStep{"Scalars become tensors", tensor_tape},
    TourStep{"Closures become nodes", node_tape},
    TourStep{"Zero-filled gradients become targets", gradient_targets},
    TourStep{"The heap becomes an arena", step_memory},
    TourStep{"Globals become a Step", step_object},
    TourStep{"Loops become kernels", kernel_slots},
    TourStep{"The real tape", [](std::ostream& out) { real_tape(out); }, real_tape, "x w"},
    TourStep{"Parameters", [](std::ostream& out) { trained_values(out); }, trained_values, "", "x"},
    TourStep{"Dropout without masks", [](std::ostream& out) { dropped_elements(out); }, dropped_elements, "x"},
    TourStep{"A loss that consumes its logits", [](std::ostream& out) { consumed_logits(out); }, consumed_logits, "x"},
    TourStep{"Checking a gradient", random_cotangent},
    TourStep{"Reading a tape", [](std::ostream& out) { listed_tape(out); }, listed_tape, "", "x"},
    TourStep{"Adding an operation", [](std::ostream& out) { added_op(out); }, added_op, "x"},
    TourStep{"A network that learns", [](std::ostream& out) { learned_circle(out); }, learned_circle, "", "points"},
};

constexpr std::string_view kHelp =
    "The listings of docs/guide/autograd-tour.md, run, and operations watched.\n"
    "  autograd_tour                 all steps of the page\n"
    "  autograd_tour STEP            one of them, by its number\n"
    "  autograd_tour --draw STEP     its tape as a page, tape-STEP.html, or as FILE\n"
    "    FILE                        behind STEP: a page, or a .dot or .svg drawing\n"
    "  autograd_tour --trace OP      one operation forwards and backwards: values,\n"
    "                                kernels, what is kept, how gradients are written,\n"
    "                                and each derivative beside a difference\n"
    "  autograd_tour --trace list    the operations that there are\n"
    "    --device DEVICE             of --trace: cpu, simulated, cuda (cpu)\n"
    "Everything is computed in f64 on one thread.\n";

/// What the program was asked for; nothing: all steps.
struct Request {
  bool help = false;
  std::optional<std::size_t> step;  // from 0
  std::string trace;
  Device device;
};

/// The value of the option at place `i`, which moves on to it.
const std::string& value_of(std::span<const std::string> arguments, std::size_t& i, std::string_view what) {
  if (i + 1 == arguments.size()) throw UsageError(text(arguments[i], " must have a ", what, ", got nothing"));
  return arguments[++i];
}

/// From 0.
std::size_t parse_step(const std::string& given) {
  for (std::size_t i = 0; i < kSteps.size(); ++i)
    if (given == std::to_string(i + 1)) return i;
  throw UsageError(text("the argument must be one step, 1 to ", kSteps.size(), ", got '", given,
                        "'\n  without an argument all steps are printed; --help says what else there is"));
}

Request parse_request(std::span<const std::string> arguments) {
  Request request;
  std::string others;
  bool device = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      request.help = true;
    } else if (argument == "--trace") {
      request.trace = value_of(arguments, i, "name");
    } else if (argument == "--device") {
      request.device = parse_device(value_of(arguments, i, "device"));
      device = true;
    } else {
      others += (others.empty() ? "" : " ") + argument;
    }
  }
  if (device && request.trace.empty()) throw UsageError("--device is for --trace alone, got no --trace");
  if (!others.empty() && !request.trace.empty())
    throw UsageError(text("--trace takes one operation and nothing else, got '", others, "'"));
  if (!others.empty()) request.step = parse_step(others);
  return request;
}

void print_names(std::ostream& out) {
  std::size_t widest = 0;
  for (const OpExample& example : op_examples()) widest = std::max(widest, example.name.size());
  for (const OpExample& example : op_examples())
    fmt::print(out, "{:<{}}  autograd/functions/{}.hpp\n", example.name, widest, example.source);
}

void answer(const Request& request, std::ostream& out) {
  if (request.help) {
    out << kHelp;
  } else if (request.trace == "list") {
    print_names(out);
  } else if (!request.trace.empty()) {
    const OpExample& example = op_example(request.trace);
    out << trace_text(example, request.device, trace_op(example, request.device));
  } else if (request.step) {
    kSteps[*request.step].run(out);
  } else {
    for (std::size_t i = 0; i < kSteps.size(); ++i) {
      out << (i > 0 ? "\n" : "") << "== " << i + 1 << ". " << kSteps[i].title << " ==\n";
      kSteps[i].run(out);
    }
  }
}

}  // namespace

std::span<const TourStep> tour_steps() { return kSteps; }

int run_tour(std::span<const std::string> arguments, std::ostream& out, std::ostream& errors) {
  try {
    answer(parse_request(arguments), out);
    return 0;
  } catch (const UsageError& error) {
    errors << "autograd_tour: " << error.what() << '\n';
    return 2;
  }
}

}  // namespace engram::tour
