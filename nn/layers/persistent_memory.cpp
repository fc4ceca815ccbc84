#include "nn/layers/persistent_memory.hpp"

#include <cmath>

#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {

PersistentMemory::PersistentMemory(std::int64_t heads, std::int64_t slots, std::int64_t depth)
    : keys_({heads, slots, depth}, init::normal_variance(1.0 / static_cast<double>(depth))),
      values_({heads, slots, depth}, init::normal_variance(1.0 / static_cast<double>(slots))) {}

void PersistentMemory::join(Tape& tape, AttentionVariables& in, AttentionOptions& options) {
  in.slot_keys = tape.parameter(keys_);
  in.slot_values = tape.parameter(values_);
  options.slot_value_scale = std::sqrt(static_cast<double>(keys_.shape()[1]));
}

Variable PersistentMemory::attend(const Variable& query, double dropout, std::int64_t keep_bytes,
                                  AttentionTrace* trace) {
  AttentionVariables in;
  in.content_query = query;
  AttentionOptions options;
  options.heads = static_cast<int>(keys_.shape()[0]);
  options.dropout = DropoutRule(dropout);
  join(query.tape(), in, options);
  const AttentionResult result = attention(in, options, kept_bytes(trace, keep_bytes));
  if (trace != nullptr && trace->keep_results) trace->slots = result;
  return result.out;
}

void PersistentMemory::visit(Visitor& visit) {
  visit("persistent_keys", keys_);
  visit("persistent_values", values_);
}

}  // namespace engram
