#include "apps/tour/tour.hpp"

#include <array>

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
    TourStep{"The real tape", [](std::ostream& out) { real_tape(out); }, real_tape},
    TourStep{"Parameters", [](std::ostream& out) { trained_values(out); }, trained_values},
    TourStep{"Dropout without masks", [](std::ostream& out) { dropped_elements(out); }, dropped_elements},
    TourStep{"A loss that consumes its logits", [](std::ostream& out) { consumed_logits(out); }, consumed_logits},
    TourStep{"Checking a gradient", random_cotangent},
    TourStep{"Reading a tape", [](std::ostream& out) { listed_tape(out); }, listed_tape},
    TourStep{"Adding an operation", [](std::ostream& out) { added_op(out); }, added_op},
    TourStep{"A network that learns", [](std::ostream& out) { learned_circle(out); }, learned_circle},
};

}  // namespace

std::span<const TourStep> tour_steps() { return kSteps; }

int run_tour(std::span<const std::string> arguments, std::ostream& out, std::ostream& errors) {
  if (arguments.empty()) {
    for (std::size_t i = 0; i < kSteps.size(); ++i) {
      out << (i > 0 ? "\n" : "") << "== " << i + 1 << ". " << kSteps[i].title << " ==\n";
      kSteps[i].run(out);
    }
    return 0;
  }
  for (std::size_t i = 0; i < kSteps.size(); ++i) {
    if (arguments.size() > 1 || arguments[0] != std::to_string(i + 1)) continue;
    kSteps[i].run(out);
    return 0;
  }
  std::string given;
  for (const std::string& argument : arguments) given += (given.empty() ? "" : " ") + argument;
  errors << text("autograd_tour: the argument must be one step, 1 to ", kSteps.size(), ", got '", given,
                 "'\n  without an argument all steps are printed, with --draw STEP the tape of one is drawn\n");
  return 2;
}

}  // namespace engram::tour
