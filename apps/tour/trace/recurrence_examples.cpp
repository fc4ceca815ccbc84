/// Recurrent layers, a sequence of two steps each.

#include "apps/tour/trace/op_examples.hpp"
#include "autograd/functions.hpp"

namespace engram::tour {
namespace {

using Inputs = std::span<Variable>;
using Outputs = std::vector<Variable>;

constexpr std::int64_t kUnits = 2, kSteps = 2;

OpExample recurrent(std::string_view name, std::string_view formula, const RecurrenceOptions& options) {
  return {
      .name = name,
      .source = "recurrence",
      .formula = formula,
      .inputs = {drawn("inputs", {1, kSteps, options.input_blocks() * kUnits}),
                 drawn("weight", {options.weight_blocks() * kUnits, kUnits}), counts("preceding", {1, kSteps}, {0, 1})},
      .outputs = {"h"},
      .function = [options](Inputs x) { return Outputs{recurrence(x[0], x[1], {}, x[2].value(), options).outputs}; }};
}

}  // namespace

std::vector<OpExample> recurrence_examples() {
  return {recurrent("recurrence_rnn", "h[t] = tanh(a[t] + U h[t - 1])", {.cell = RecurrentCell::rnn}),
          recurrent("recurrence_lstm", "c = f c[t - 1] + i g, h = o tanh(c); inputs: i, f, g, o",
                    {.cell = RecurrentCell::lstm}),
          recurrent("recurrence_fofe", "h[t] = tanh(a[t] + sum over m of 0.6^m U_m h[t - m])",
                    {.cell = RecurrentCell::hornn_fofe, .order = 1}),
          recurrent("recurrence_gated", "h[t] = tanh(a[t] + sum over m of gate_m U_m h[t - m])",
                    {.cell = RecurrentCell::hornn_gated, .order = 1}),
          {.name = "quasi_recurrence",
           .source = "quasi_recurrence",
           .formula = "c = f c[t - 1] + (1 - f) z, h = o c; inputs: z, f, o",
           .inputs = {drawn("inputs", {1, kSteps, 3 * kUnits}), counts("preceding", {1, kSteps}, {0, 1})},
           .outputs = {"h"},
           .function = [](Inputs x) { return Outputs{quasi_recurrence(x[0], {}, x[1].value()).outputs}; }}};
}

}  // namespace engram::tour
