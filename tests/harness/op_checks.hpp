#pragma once
/// The checks of one set of arguments of one entry. Each returns one line per fault, nothing when all is well, so that
/// they can be tried on operations that are wrong on purpose (tests/harness/op_checks_test.cpp).

#include <string>
#include <vector>

#include "autograd/gradcheck.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness {

using Faults = std::vector<std::string>;

/// f64 outputs against the plain reference.
Faults check_reference(Backend& backend, const OpCase& op, std::size_t set);
/// f64 gradients against central differences, with a random cotangent. `report`, when given, receives the worst.
Faults check_gradient(Backend& backend, const OpCase& op, std::size_t set, GradcheckReport* report = nullptr);
/// Outputs and gradients of `backend` in f32 (and bf16 where the entry has a tolerance for it) against f64 of `truth`.
Faults check_precision(Backend& backend, Backend& truth, const OpCase& op, std::size_t set);
/// f64 outputs and gradients of `backend` against those of `truth`, which differ by the order of sums only.
Faults check_same_f64(Backend& backend, Backend& truth, const OpCase& op, std::size_t set);
/// f(x) and f(x) again on shared inputs: the gradient doubles.
Faults check_add_mode(Backend& backend, const OpCase& op, std::size_t set, DType dtype);
/// Each input in turn a constant, each output in turn alone, nothing differentiable at all, inference mode.
Faults check_unwanted(Backend& backend, const OpCase& op, std::size_t set);
/// Same bits whether fresh memory holds NaN or zero; no NaN in the results; nothing written outside of a block or
/// into an input; all memory given back.
Faults check_memory(Backend& backend, const OpCase& op, std::size_t set, DType dtype);
/// Same bits in a second run; on the CPU (where the entry promises it) with one and with two threads; on the simulated
/// device with its threads and blocks in other orders.
Faults check_determinism(Backend& backend, const OpCase& op, std::size_t set, DType dtype);
/// The entry's bad calls are refused with the promised text, and leave no memory behind.
Faults check_errors(Backend& backend, const OpCase& op);

}  // namespace engram::harness
