#include "apps/studies/attention/traced_reading.hpp"

#include <algorithm>

#include "apps/run/model/block_tensors.hpp"
#include "autograd/tape.hpp"

namespace engram {

void read_traced(LanguageModel& model, std::span<const std::int32_t> tokens, const TracedReading& reading,
                 Runtime& runtime, const TraceFound& found) {
  ModelPast past = model.training_past(runtime.backend(), runtime.memory(), 1, reading.dtype);
  BlockTensors input;
  const auto count = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t first = 0; first < count; first += reading.block) {
    const std::int64_t length = std::min(reading.block, count - first);
    Step& step = runtime.step();
    step.begin({});
    {
      input.write({.inputs = tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length)),
                   .targets = {},
                   .length = length},
                  1, model.tokens().clusters(), runtime.backend(), runtime.memory());
      Tape tape(step);  // a training tape: only those keep weights
      ModelTrace trace(step.objects());
      trace.keep_results = true;
      trace.term = reading.term;
      model.hidden(tape, input.piece(0), past, &trace);
      found(trace, first, length);
    }
    runtime.arena().end_step();
  }
}

}  // namespace engram
