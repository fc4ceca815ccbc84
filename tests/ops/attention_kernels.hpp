#pragma once
/// The attention kernels called directly, with plain arrays in and out: for tests that hand one pass the results of
/// another, or look at single numbers.

#include <vector>

#include "tests/harness/op_run.hpp"
#include "tests/ops/attention_truth.hpp"

namespace engram::harness {

/// How a call is made; the random stream is that of random_stream(0), with another step if asked.
struct AttentionCall {
  DType dtype = DType::f64;
  std::uint64_t step = run_scalars().step;
  bool keep = false;  // the forward pass also returns the kept weights
  ProductPrecision products = ProductPrecision::f32;
  Backend* backend = available_backends().front().get();
  std::int64_t shift = 0;               // elements by which the content queries lie behind an aligned address
  Write write = Write::set;             // add: every gradient starts with ones
  std::vector<int> unwanted = {};       // gradients that are not asked for
  std::size_t* workspace = nullptr;     // receives the most bytes that the kernel held beside its tensors
  std::int64_t* plain_calls = nullptr;  // receives Step::plain_attention_calls()
};

/// `x` in the order of AttentionArgument. Reports writes outside of a tensor's memory as failures of the test.
AttentionTruth run_attention(std::span<const Array64> x, const AttentionOptions& options, AttentionCall call = {});
/// Gradients of all given inputs, in their order. `forward` need not come from the same inputs: a joint softmax of
/// several passes hands each the common out and lse. Its kept
/// weights are used when it has some.
std::vector<Array64> run_attention_backward(std::span<const Array64> x, const AttentionOptions& options,
                                            const AttentionTruth& forward, const Array64& dout,
                                            AttentionCall call = {});

/// Random numbers for attention_inputs, f32-representable.
std::vector<Array64> attention_numbers(const std::string& name, const AttentionOptions& options,
                                       const AttentionInputSizes& sizes);

}  // namespace engram::harness
