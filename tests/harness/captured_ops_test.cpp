/// Every entry of the op table in a captured step of the simulated device: what is captured, and what a replay
/// computes, has the bits of the same step without a capture. Captured steps must find their memory, and may not copy
/// from or to the host; the device refuses both.

#include <cstring>
#include <set>

#include "autograd/gradcheck.hpp"
#include "autograd/tape.hpp"
#include "core/arena.hpp"
#include "core/error.hpp"
#include "tests/harness/array_difference.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness::captured_ops_test {
namespace {

/// Entries whose function counts a mask on the host, where there is one; models know the count.
const std::set<std::string> kAskTheHost{"batch_norm, far from zero", "batch_norm, masked",
                                        "batch_norm, one vector as gain and bias", "batch_norm, two rows"};

/// One entry as a step that can be repeated: inputs and cotangents stay, results are copied to where they can be read.
class CapturedOp {
 public:
  CapturedOp(Backend& backend, const OpCase& op, std::size_t set, DType dtype)
      : backend_(&backend), op_(&op), given_(&op.inputs.at(set)), dtype_(dtype) {
    const std::vector<Array64> values = input_values(op.name, *given_, dtype == DType::bf16 ? dtype : DType::f32);
    for (std::size_t i = 0; i < values.size(); ++i) {
      inputs_.emplace_back();
      if ((*given_)[i].kind != Input::Kind::absent)
        inputs_.back() = to_device(backend, memory_, values[i], (*given_)[i], dtype);
    }
    step_.write_scalars({&run_scalars(), 1});
  }

  /// Without a capture, until all memory is there.
  void run_plainly() {
    for (int i = 0; i < 2; ++i) {
      results_ = 0;
      work();
    }
  }
  std::unique_ptr<Replay> capture() {
    return backend_->capture([this] {
      results_ = 0;
      work();
    });
  }
  std::vector<Array64> results() const {
    std::vector<Array64> all;
    for (const Tensor& tensor : kept_) all.push_back(to_host(*backend_, tensor));
    return all;
  }
  /// So that a replay that does nothing is seen.
  void forget_results() {
    for (const Tensor& tensor : kept_) {
      const std::vector<unsigned char> bytes(tensor.bytes(), 0xee);
      backend_->copy(const_cast<void*>(tensor.raw()), bytes.data(), bytes.size(), CopyKind::host_to_device);
    }
  }

 private:
  void keep(const Tensor& tensor) {
    if (results_ == kept_.size()) kept_.emplace_back(tensor.shape(), tensor.dtype(), backend_->device(), memory_);
    backend_->copy(kept_[results_++].raw(), tensor.raw(), tensor.bytes(), CopyKind::device_to_device);
  }
  Tensor copied(const Tensor& from) {
    Tensor to = step_.empty(from.shape(), from.dtype());
    backend_->copy(to.raw(), from.raw(), from.bytes(), CopyKind::device_to_device);
    return to;
  }
  void run_backward(Tape& tape, std::vector<Variable>& outputs) {
    if (op_->root) return tape.backward({outputs.at(0)});
    std::vector<Tensor> cotangents;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      cotangents.emplace_back();
      if (!outputs[i].requires_grad()) continue;
      if (cotangents_.size() <= i) cotangents_.resize(i + 1);
      if (!cotangents_[i]) {
        Input random = normal(outputs[i].shape());
        const std::vector<Array64> values = input_values(text(op_->name, " output ", i), {random}, DType::bf16);
        // In the type that outputs have, which may be f32 where inputs are bf16.
        cotangents_[i] = to_device(*backend_, memory_, values[0], random, outputs[i].dtype());
      }
      cotangents.back() = copied(cotangents_[i]);
    }
    backward_from(outputs, std::move(cotangents));
  }
  void work() {
    {
      step_.begin_piece(0);
      Tape tape(step_);
      std::vector<Variable> variables, leaves;
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        Variable variable;
        const Input& input = (*given_)[i];
        if (inputs_[i]) {
          const DType gradient = input.role == Role::activation ? dtype_ : compute_dtype(dtype_);
          variable = input.differentiable ? tape.leaf(copied(inputs_[i]), gradient) : tape.constant(copied(inputs_[i]));
        }
        leaves.push_back(variable.without_value());
        variables.push_back(std::move(variable));
      }
      std::vector<Variable> outputs = op_->function(variables);
      for (const Variable& output : outputs) keep(output.value());
      if (tape.size() > 0) run_backward(tape, outputs);
      for (const Variable& leaf : leaves)
        if (tape.has_gradient(leaf)) keep(tape.gradient(leaf));
    }
    arena_.end_step();
  }

  Backend* backend_;
  const OpCase* op_;
  const std::vector<Input>* given_;
  DType dtype_;
  HeapAllocator memory_{*backend_};
  Arena arena_{memory_};
  Step step_{*backend_, arena_, run_seed()};
  std::vector<Tensor> inputs_, cotangents_, kept_;
  std::size_t results_ = 0;
};

std::vector<std::string> check_captured(Backend& backend, const OpCase& op, std::size_t set, DType dtype) {
  CapturedOp step(backend, op, set, dtype);
  step.run_plainly();
  const std::vector<Array64> wanted = step.results();
  step.forget_results();
  const std::unique_ptr<Replay> replay = step.capture();
  std::vector<std::string> faults = compare_bits("captured: result", step.results(), wanted);
  step.forget_results();
  replay->run();
  for (const std::string& fault : compare_bits("replayed: result", step.results(), wanted)) faults.push_back(fault);
  return faults;
}

}  // namespace

TEST_CASE("op table: captured and replayed on the simulated device", "[ops]") {
  for (const auto& backend : available_backends()) {
    if (backend->device().kind != DeviceKind::simulated) continue;
    for (const OpCase& op : all_op_cases()) {
      DYNAMIC_SECTION(op.name) {
        const DType dtype = runs_in_bf16(*backend, op) ? DType::bf16 : DType::f32;
        for (std::size_t set = 0; set < op.inputs.size(); ++set) {
          INFO("inputs " << set << " in " << text(dtype));
          try {
            for (const std::string& fault : check_captured(*backend, op, set, dtype)) FAIL_CHECK(fault);
          } catch (const NotAvailable&) {  // op_table_test.cpp tells which
          } catch (const DeviceError& refused) {
            if (!kAskTheHost.contains(op.name)) throw;
            CHECK_THAT(refused.what(), ContainsSubstring("a captured step must not read or write memory of the host"));
          }
        }
        SUCCEED();
      }
    }
  }
}

}  // namespace engram::harness::captured_ops_test
