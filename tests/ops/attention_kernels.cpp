#include "tests/ops/attention_kernels.hpp"

namespace engram::harness {
namespace {

/// A step with the call's scalars, and the inputs as tensors.
struct Device {
  Backend& backend;
  GuardedAllocator memory{backend};
  Step step{backend, memory, run_seed()};
  AttentionInputs in;

  Device(std::span<const Array64> x, AttentionCall call) : backend(*call.backend) {
    StepScalars scalars = run_scalars();
    scalars.step = call.step;
    step.begin(scalars);
    step.set_products(call.products);
    Tensor* const places[] = {&in.content_query, &in.position_query, &in.past_keys,     &in.past_values,
                              &in.keys,          &in.values,         &in.position_keys, &in.slot_keys,
                              &in.slot_values,   &in.span,           &in.past_valid};
    for (std::size_t i = 0; i < kAttentionArguments; ++i)
      if (x[i].given()) *places[i] = upload(x[i], call.dtype, i == kPastValid);
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
  Tensor lse = device.step.empty({query[0], options.heads, query[1]}, call.dtype);
  Tensor kept;
  if (call.keep) kept = device.step.empty({kept_weights_count(device.in, options)}, call.dtype);
  kernels::attention_forward(device.step, device.in, options, device.step.next_random(), out, lse, kept);
  return {to_host(device.backend, out), to_host(device.backend, lse),
          call.keep ? to_host(device.backend, kept) : Array64{}};
}

std::vector<Array64> run_attention_backward(std::span<const Array64> x, const AttentionOptions& options,
                                            const AttentionTruth& forward, const Array64& dout, AttentionCall call) {
  Device device(x, call);
  AttentionGradients gradients;
  AttentionGradients::Target* const places[] = {&gradients.content_query, &gradients.position_query,
                                                &gradients.past_keys,     &gradients.past_values,
                                                &gradients.keys,          &gradients.values,
                                                &gradients.position_keys, &gradients.slot_keys,
                                                &gradients.slot_values,   &gradients.span};
  for (std::size_t i = 0; i < kPastValid; ++i)
    if (x[i].given())
      places[i]->tensor = device.step.empty(Shape(std::span<const std::int64_t>(x[i].shape)), call.dtype);
  kernels::attention_backward(device.step, device.in, options, device.step.next_random(),
                              device.upload(forward.out, call.dtype), device.upload(forward.lse, call.dtype),
                              forward.kept.given() ? device.upload(forward.kept, call.dtype) : Tensor{},
                              device.upload(dout, call.dtype), gradients);
  std::vector<Array64> all(kAttentionArguments);
  for (std::size_t i = 0; i < kPastValid; ++i)
    if (x[i].given()) all[i] = to_host(device.backend, places[i]->tensor);
  return all;
}

std::vector<Array64> attention_numbers(const std::string& name, const AttentionOptions& options,
                                       const AttentionInputSizes& sizes) {
  return input_values(name, attention_inputs(options, sizes), DType::f32);
}

}  // namespace engram::harness
