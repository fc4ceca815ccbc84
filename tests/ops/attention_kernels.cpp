#include "tests/ops/attention_kernels.hpp"

#include <algorithm>

#include "tests/harness/catch.hpp"

namespace engram::harness {
namespace {

/// Spans and statistics beside tensors of `dtype`, which in bf16 are f32.
DType exact(DType dtype) { return dtype == DType::bf16 ? DType::f32 : dtype; }

/// A step with the call's scalars, and the inputs as tensors.
struct Device {
  Backend& backend;
  GuardedAllocator memory{backend};
  Step step{backend, memory, run_seed()};
  AttentionInputs in;

  Device(std::span<const Array64> x, const AttentionCall& call) : backend(*call.backend) {
    StepScalars scalars = run_scalars();
    scalars.step = call.step;
    step.begin(scalars);
    step.set_products(call.products);
    Tensor* const places[] = {&in.content_query, &in.position_query, &in.past_keys,     &in.past_values,
                              &in.keys,          &in.values,         &in.position_keys, &in.position_values,
                              &in.slot_keys,     &in.slot_values,    &in.span,          &in.past_valid};
    for (std::size_t i = 0; i < kAttentionArguments; ++i)
      if (x[i].given()) *places[i] = upload(x[i], i == kSpan ? exact(call.dtype) : call.dtype, i == kPastValid);
    if (call.shift > 0) {
      Array64 longer{{x[0].count() + call.shift}, std::vector<double>(static_cast<std::size_t>(call.shift))};
      longer.data.insert(longer.data.end(), x[0].data.begin(), x[0].data.end());
      in.content_query = upload(longer, call.dtype).rows(call.shift, longer.count()).view(in.content_query.shape());
    }
  }
  ~Device() {
    in = {};  // guard words are looked at when memory is given back
    for (const std::string& fault : memory.faults()) FAIL_CHECK(fault);
  }
  /// Calls the kernel.
  template <class Kernel>
  void run(const AttentionCall& call, Kernel kernel) {
    const std::size_t before = memory.bytes_in_use();
    kernel();
    if (call.workspace != nullptr) *call.workspace = memory.peak_bytes() - std::min(before, memory.peak_bytes());
    if (call.plain_calls != nullptr) *call.plain_calls = step.plain_attention_calls();
  }
  Tensor upload(const Array64& x, DType dtype, bool integer = false) {
    return to_device(backend, memory, x, {.integer = integer}, dtype);
  }
};

}  // namespace

AttentionTruth run_attention(std::span<const Array64> x, const AttentionOptions& options, AttentionCall call) {
  Device device(x, call);
  const Shape& query = device.in.content_query.shape();
  Tensor out = device.step.empty(query, call.dtype);
  Tensor lse = device.step.empty({query[0], options.heads, query[1]}, exact(call.dtype));
  Tensor kept;
  if (call.keep) kept = device.step.empty({kept_weights_count(device.in, options)}, call.dtype);
  device.run(call, [&] {
    kernels::attention_forward(device.step, device.in, options, device.step.next_random(), out, lse, kept);
  });
  return {to_host(device.backend, out), to_host(device.backend, lse),
          call.keep ? to_host(device.backend, kept) : Array64{}};
}

std::vector<Array64> run_attention_backward(std::span<const Array64> x, const AttentionOptions& options,
                                            const AttentionTruth& forward, const Array64& dout, AttentionCall call) {
  Device device(x, call);
  AttentionGradients gradients;
  Target* const places[] = {
      &gradients.content_query, &gradients.position_query, &gradients.past_keys,     &gradients.past_values,
      &gradients.keys,          &gradients.values,         &gradients.position_keys, &gradients.position_values,
      &gradients.slot_keys,     &gradients.slot_values,    &gradients.span};
  for (std::size_t i = 0; i < kPastValid; ++i) {
    if (!x[i].given() || std::ranges::count(call.unwanted, static_cast<int>(i)) > 0) continue;
    Array64 ones = x[i];
    std::ranges::fill(ones.data, 1);
    const DType dtype = i == kSpan ? exact(call.dtype) : call.dtype;
    *places[i] = {call.write == Write::add ? device.upload(ones, dtype)
                                           : device.step.empty(Shape(std::span<const std::int64_t>(x[i].shape)), dtype),
                  call.write};
  }
  const Tensor out = device.upload(forward.out, call.dtype), lse = device.upload(forward.lse, exact(call.dtype));
  const Tensor kept = forward.kept.given() ? device.upload(forward.kept, call.dtype) : Tensor{};
  const Tensor gradient = device.upload(dout, call.dtype);
  device.run(call, [&] {
    kernels::attention_backward(device.step, device.in, options, device.step.next_random(), out, lse, kept, gradient,
                                gradients);
  });
  std::vector<Array64> all(kAttentionArguments);
  for (std::size_t i = 0; i < kPastValid; ++i)
    if (places[i]->tensor) all[i] = to_host(device.backend, places[i]->tensor);
  return all;
}

std::vector<Array64> attention_numbers(const std::string& name, const AttentionOptions& options,
                                       const AttentionInputSizes& sizes) {
  return input_values(name, attention_inputs(options, sizes), DType::f32);
}

}  // namespace engram::harness
