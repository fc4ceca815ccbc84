#include "apps/tape/tape_recording.hpp"

#include <algorithm>

namespace engram {

double TapeRecording::forward_seconds() const {
  double sum = 0;
  for (const RecordedOp& op : ops) sum += op.forward.seconds;
  return sum;
}

double TapeRecording::backward_seconds() const {
  double sum = 0;
  for (const RecordedOp& op : ops) sum += op.backward.seconds;
  return sum;
}

std::size_t TapeRecording::peak_bytes() const {
  const auto both = [](const RecordedMemory& memory) { return memory.kept + memory.gradients; };
  std::size_t most = both(turn);
  for (const RecordedOp& op : ops) most = std::max({most, both(op.forward.memory), both(op.backward.memory)});
  return most;
}

}  // namespace engram
