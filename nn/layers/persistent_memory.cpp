#include "nn/layers/persistent_memory.hpp"

#include <cmath>

#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {

PersistentMemory::PersistentMemory(std::int64_t heads, std::int64_t slots, std::int64_t depth)
    : keys_({heads, slots, depth}, init::normal_variance(1.0 / static_cast<double>(depth))),
      values_({heads, slots, depth}, init::normal_variance(1.0 / static_cast<double>(slots))) {}

Variable PersistentMemory::keys(Tape& tape) { return tape.parameter(keys_); }
Variable PersistentMemory::values(Tape& tape) { return tape.parameter(values_); }
double PersistentMemory::value_scale() const { return std::sqrt(static_cast<double>(keys_.shape()[1])); }

void PersistentMemory::visit(Visitor& visit) {
  visit("persistent_keys", keys_);
  visit("persistent_values", values_);
}

}  // namespace engram
