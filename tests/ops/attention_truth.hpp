#pragma once
/// The attention operation in the words of tests/reference/span_attention.hpp: every head is a problem of its own, with
/// its own window; packed pasts are unrolled; dropout is drawn element by element by the numbering that
/// core/kernels/attention.hpp promises.

#include <span>
#include <string>
#include <vector>

#include "core/kernels/attention.hpp"
#include "tests/harness/op_table.hpp"

namespace engram::harness {

/// Places of the arguments in every list of inputs; those not used are absent.
enum AttentionArgument : std::uint8_t {
  kContentQuery,
  kPositionQuery,
  kPastKeys,
  kPastValues,
  kKeys,
  kValues,
  kPositionKeys,
  kPositionValues,
  kSlotKeys,
  kSlotValues,
  kSpan,
  kPastValid,
  kAttentionArguments
};

struct AttentionTruth {
  Array64 out;        // [B, M, H D]
  Array64 lse;        // [B, H, M]
  Array64 kept = {};  // as attention_forward keeps it, when asked
};

/// `x` in the order of AttentionArgument. Dropout of `options` takes its numbers from random_stream(operation).
AttentionTruth attention_truth(std::span<const Array64> x, const AttentionOptions& options,
                               std::uint32_t operation = 0);
/// The analytic gradients of sum(out * dout), in the order of the arguments (none for past_valid).
std::vector<Array64> attention_truth_gradients(std::span<const Array64> x, const AttentionOptions& options,
                                               const Array64& dout, std::uint32_t operation = 0);

/// Sizes of one list of inputs, beside what the options say.
struct AttentionInputSizes {
  std::int64_t streams = 2, block = 5, depth = 3;
  std::int64_t slots = -1;  ///< N; -1: absent
  enum class Positions : std::uint8_t { none, shared, per_head } positions = Positions::shared;
  Positions position_values = Positions::none;
  bool position_query = false;
  std::vector<double> span = {};        ///< zeta of every head; empty: no mask
  bool query_spans = false;             ///< `span` is dealt out to the elements of [B, M, H] instead, over and over
  bool span_is_constant = false;        ///< where its derivative jumps
  std::vector<double> past_valid = {};  ///< of every stream; empty: absent
};
std::vector<Input> attention_inputs(const AttentionOptions& options, const AttentionInputSizes& sizes);

/// An entry of the op table; outputs are out and (compared only) lse. `keep_bytes` as in attention().
OpCase attention_case(std::string name, const AttentionOptions& options, std::vector<AttentionInputSizes> sets,
                      std::int64_t keep_bytes = 0);

/// Registers two entries for each: weights kept for the backward pass, and computed again there.
struct AttentionCase {
  std::string name;
  AttentionOptions options;
  std::vector<AttentionInputSizes> sets;
};
class AttentionCases {
 public:
  AttentionCases(std::initializer_list<AttentionCase> cases);
};

/// Options for one window per head, score scale 0.6 and slot scales that differ from 1.
AttentionOptions attention_options(int max_distance, std::vector<std::int32_t> windows);

}  // namespace engram::harness
