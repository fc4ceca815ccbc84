#include "apps/studies/attention/traced_reading.hpp"

#include <algorithm>

#include "apps/run/model/block_tensors.hpp"
#include "autograd/tape.hpp"

namespace engram {

void read_traced(const PlacedModel& placed, std::span<const std::int32_t> tokens, const TracedReading& reading,
                 const TraceFound& found) {
  ModelPast past = placed.training_past(1);
  BlockTensors input;
  const auto count = static_cast<std::int64_t>(tokens.size());
  for (std::int64_t first = 0; first < count; first += reading.block) {
    const std::int64_t length = std::min(reading.block, count - first);
    const auto block = tokens.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(length));
    placed.runtime.in_step([&](Step& step) {
      const TokenBatch batch = input.batch_of({.inputs = block, .targets = {}, .length = length}, placed);
      Tape tape(step, Tape::Mode::inference);
      ModelTrace trace(step.objects());
      trace.keep_results = true;
      trace.term = reading.term;
      placed.model.hidden(tape, batch, past, &trace);
      found(trace, first, length);
    });
  }
}

}  // namespace engram
