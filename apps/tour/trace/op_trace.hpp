#pragma once
/// One operation, watched: what went in and came out forwards and backwards, which kernels ran, what its nodes kept,
/// how every gradient was written, and each derivative beside a central difference.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/tour/trace/op_example.hpp"
#include "autograd/gradcheck.hpp"
#include "core/device.hpp"

namespace engram::tour {

struct TracedTensor {
  std::string name;
  Shape shape;
  DType dtype = DType::f64;
  std::vector<double> numbers;  ///< row-major
  bool differentiated = false;  ///< of an output: a cotangent came in; of an input: a gradient is wanted
};

/// What one kernel did to a gradient's memory, as it was seen there: memory is filled with NaN when it is handed out.
struct GradientWrite {
  /// replaced: there was nothing, and afterwards no NaN; in_part: some are left; added: it changed what was there;
  /// handed_over: no kernel of this pass wrote it, another tensor became the gradient.
  enum class Kind : std::uint8_t { replaced, in_part, added, handed_over };
  Kind kind = Kind::replaced;
  std::string kernel;  ///< "" when it was handed over
  friend bool operator==(const GradientWrite&, const GradientWrite&) = default;
};

struct TracedGradient {
  TracedTensor tensor;                      ///< without numbers when none reached the input
  std::vector<GradientWrite> writes;        ///< in their order
  std::vector<GradientWrite> writes_twice;  ///< when the tape has the operation twice; empty when it cannot
  std::vector<CheckedElement> elements;     ///< each beside its difference
};

struct KeptTensor {
  std::string operation;  ///< the node's name
  std::string name;
  Shape shape;
  std::size_t bytes = 0;
};

struct OpTrace {
  std::vector<TracedTensor> inputs;
  std::vector<TracedTensor> outputs;
  std::vector<std::string> operations;  ///< on the tape, in order
  std::vector<KeptTensor> kept;
  std::vector<std::string> forward_kernels;   ///< in order
  std::vector<TracedTensor> cotangents;       ///< of the outputs that have one
  std::vector<std::string> backward_kernels;  ///< in order
  std::vector<TracedGradient> gradients;      ///< of the inputs that are differentiated
  GradcheckReport report;
};

/// Computes in f64, on one thread where the device is the CPU. Throws NotAvailable for a device that this program was
/// built without, DeviceError for one that the machine has not.
OpTrace trace_op(const OpExample& example, Device device);

/// The trace as text, lines of at most 80 characters. It depends on the machine no more than its rounded numbers do.
std::string trace_text(const OpExample& example, Device device, const OpTrace& trace);

}  // namespace engram::tour
