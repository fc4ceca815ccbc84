#pragma once
/// One call of an op-table entry: fresh inputs, forward, backward with the entry's random cotangents, everything
/// brought to the host as doubles (which hold every f32 and bf16 exactly, so equal bits stay equal).

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/backend.hpp"
#include "core/dtype.hpp"
#include "tests/harness/guarded_allocator.hpp"
#include "tests/harness/op_table.hpp"

namespace engram::harness {

/// Every device that this program was built with and this machine has; the first is the CPU. The environment's
/// ENGRAM_TEST_DEVICE=cuda leaves out every other beside the CPU, and demands that one.
const std::vector<std::unique_ptr<Backend>>& available_backends();

/// The simulated device with its threads and blocks in other orders than forward, by the name of the order. Only for
/// programs that have that device.
const std::vector<std::pair<std::string, std::unique_ptr<Backend>>>& simulated_in_other_orders();

struct RunOptions {
  DType dtype = DType::f64;
  DType rounding = DType::f32;  ///< input values and cotangents are representable in this, always in bf16 if dtype is
  bool inference = false;       ///< forward only
  int uses = 1;                 ///< how often the function is called on the same inputs; the gradients add up
  std::vector<int> constants;   ///< inputs that are not differentiated, beside those of the entry
  std::vector<int> outputs;     ///< which outputs get a cotangent; empty: all
  unsigned char fill = GuardedAllocator::kNaNBytes;
};

struct OpResult {
  std::vector<Array64> outputs;
  std::vector<Array64> gradients;  ///< per input; not given: not differentiated, or no gradient reached it
  std::vector<DType> output_dtypes, gradient_dtypes;
  std::vector<std::string> faults;  ///< overwritten guards, changed inputs, memory that was not given back
  std::size_t recorded = 0;         ///< operations on the tape after the forward pass
};

/// Whether the entry has a bf16 form and the device kernels for it.
bool runs_in_bf16(const Backend& backend, const OpCase& op);

/// The values of the arguments of one set, rounded to `rounding`; those of vectors to f32 instead of bf16.
std::vector<Array64> input_values(const std::string& name, const std::vector<Input>& inputs, DType rounding);
/// As a tensor in `memory` of what a run in `dtype` has in the input's role; an i32 one when the input is.
Tensor to_device(Backend& backend, Allocator& memory, const Array64& values, const Input& input, DType dtype);
/// Any element type, as doubles. Rank 0 becomes shape [1].
Array64 to_host(Backend& backend, const Tensor& tensor);

/// The scalars and the seed of every call: see random_stream().
const StepScalars& run_scalars();
std::uint64_t run_seed();

/// `set` numbers the entry's inputs. What the function throws passes through.
OpResult run_op(Backend& backend, const OpCase& op, std::size_t set, const RunOptions& options = {});

}  // namespace engram::harness
