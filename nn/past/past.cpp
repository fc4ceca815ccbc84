#include "nn/past/past.hpp"

#include "core/error.hpp"

namespace engram {

StatePast& state_past(LayerPast& past) {
  auto* const states = dynamic_cast<StatePast*>(&past);
  if (states == nullptr) throw Error("past: training must have hidden states, got another past");
  return *states;
}

AttentionPast& attention_past(LayerPast& past) {
  auto* const found = dynamic_cast<AttentionPast*>(&past);
  if (found == nullptr) throw Error("past: attention must have keys and values of the past, got another past");
  return *found;
}

}  // namespace engram
