#pragma once
/// What a kernel gets beside its tensors: device, memory of the step, randomness, and the scalars of the step.
/// It is passed along; there is no current device and no current step.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/activation_precision.hpp"
#include "core/allocator.hpp"
#include "core/backend.hpp"
#include "core/product_precision.hpp"
#include "core/random_stream.hpp"
#include "core/tensor.hpp"
#include "core/wrong_ids.hpp"

namespace engram {

/// A tensor that a kernel was called with; it may be empty.
struct TensorArgument {
  const Tensor* tensor = nullptr;
  bool written = false;  ///< an output, or both
};

/// Sees every kernel call of a step: timing, tracing. It may throw.
class KernelObserver {
 public:
  virtual ~KernelObserver() = default;
  virtual void before(const char* kernel) = 0;
  virtual void after(const char* kernel) = 0;
  /// Follows after(), with the tensors of the call in the order of the kernel's arguments.
  virtual void tensors(const char* /*kernel*/, std::span<const TensorArgument>) {}
};

/// Uninitialised scratch memory of one kernel call, returned when it goes out of scope.
class Workspace {
 public:
  Workspace(Allocator& allocator, std::size_t bytes)
      : allocator_(&allocator), bytes_(bytes), data_(allocator.allocate(bytes)) {}
  ~Workspace() { allocator_->free(data_, bytes_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  template <class T>
  T* data() const {
    return static_cast<T*>(data_);
  }

 private:
  Allocator* allocator_;
  std::size_t bytes_;
  void* data_;
};

class Step {
 public:
  /// `memory` is usually an Arena. Both must outlive the step and its tensors.
  Step(Backend& backend, Allocator& memory, std::uint64_t seed = 0);
  ~Step();
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  Device device() const { return backend_->device(); }
  Backend& backend() const { return *backend_; }
  /// false: kernels are not run (Backend::computes); those that take memory beside their tensors are asked for it.
  bool computes() const { return computes_; }
  Allocator& memory() const { return *memory_; }

  /// An uninitialised tensor of this step.
  Tensor empty(Shape shape, DType dtype) { return Tensor(shape, dtype, device(), *memory_); }
  Workspace workspace(std::size_t bytes) { return Workspace(*memory_, bytes); }
  /// For small host objects of this step; see Allocator::objects.
  std::pmr::memory_resource* objects() const { return &memory_->objects(); }

  /// The random stream of the next operation. Ids run from 0 after begin(), in recording order.
  RandomStream next_random() { return {seed_, next_operation_++, scalars_}; }
  /// Device memory.
  const StepScalars* scalars() const { return scalars_; }
  /// Those of the step's first piece, for what is to be drawn alike whatever piece asks for it. Device memory.
  const StepScalars* first_scalars() const { return all_scalars_; }

  /// Starts a step (or a piece of one): writes the scalars to the device, restarts the operation ids. Until then a new
  /// Step has those of update 0 at rate 0.
  void begin(const StepScalars& scalars);
  /// begin() in two parts, for steps of several pieces whose kernels are recorded. First this, which writes the scalars
  /// of all pieces to the device;
  void write_scalars(std::span<const StepScalars> of_pieces);
  /// then this for each piece, which hands nothing to the device.
  void begin_piece(std::size_t piece);
  /// The scalars, on the host, that were begun with; nullptr: nothing was begun yet.
  const StepScalars* begun() const { return is_begun_ && piece_ < on_host_.size() ? &on_host_[piece_] : nullptr; }

  ProductPrecision products() const { return products_; }
  void set_products(ProductPrecision precision) { products_ = precision; }

  ActivationPrecision activations() const { return activations_; }
  /// Throws NotAvailable for bf16 on a device without kernels for it.
  void set_activations(ActivationPrecision precision);

  /// Wrong ids that kernels found: to be checked wherever results of the step are read.
  WrongIds& wrong_ids() { return wrong_ids_; }

  /// Calls of attention that ran in whole matrices of scores, although products were in bf16 and the device has a
  /// quicker form for that, since the step was made; what a device repeats by itself calls nothing. Counted by devices
  /// that have two forms, with the reason of the last one.
  std::int64_t plain_attention_calls() const { return plain_attention_calls_; }
  const std::string& plain_attention_reason() const { return plain_attention_reason_; }
  void count_plain_attention(const std::string& reason);

  KernelObserver* observer() const { return observer_; }
  /// Not owned; nullptr: none.
  void observe(KernelObserver* observer) { observer_ = observer; }

 private:
  Backend* backend_;
  Allocator* memory_;
  bool computes_;
  std::uint64_t seed_;
  std::uint32_t next_operation_ = 0;
  StepScalars* all_scalars_ = nullptr;    // of the pieces
  std::size_t pieces_ = 0;                // that there is memory for
  std::vector<StepScalars> on_host_;      // of the pieces
  std::size_t piece_ = 0;                 // the present one
  bool is_begun_ = false;                 // by who uses it, not by the constructor
  const StepScalars* scalars_ = nullptr;  // of the present one
  ProductPrecision products_ = ProductPrecision::f32;
  ActivationPrecision activations_ = ActivationPrecision::f32;
  std::int64_t plain_attention_calls_ = 0;
  std::string plain_attention_reason_;
  KernelObserver* observer_ = nullptr;
  WrongIds wrong_ids_;
};

}  // namespace engram
