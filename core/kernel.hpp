#pragma once
/// A kernel is a slot: an inline object with a signature and one function pointer per device. The declarations are
/// in core/kernels/; each device's own source file fills its pointer when the program starts.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/device.hpp"
#include "core/step.hpp"
#include "core/target.hpp"

namespace engram {

/// Whether a kernel takes memory of the step beside its tensors. One that does is called in steps that do not compute
/// (Step::computes) too, and returns as soon as it has taken its memory.
enum class KernelMemory : std::uint8_t { none, workspace };

class KernelSlot {
 public:
  constexpr explicit KernelSlot(const char* name) : name_(name) {}
  KernelSlot(const KernelSlot&) = delete;
  KernelSlot& operator=(const KernelSlot&) = delete;

  const char* name() const { return name_; }
  bool available(DeviceKind kind) const { return functions_[static_cast<int>(kind)] != nullptr; }
  /// Whether it was ever called; lets the tests prove that every kernel is reached.
  bool was_called() const { return called_.load(std::memory_order_relaxed); }

 protected:
  using Any = void (*)();
  void bind_any(DeviceKind kind, Any function, KernelMemory memory);
  [[noreturn]] void throw_not_available(DeviceKind kind) const;

  const char* name_;
  std::array<Any, kDeviceKinds> functions_{};
  std::array<KernelMemory, kDeviceKinds> memory_{};
  mutable std::atomic<bool> called_{false};
};

/// All slots that at least one device has filled, in no particular order.
std::span<KernelSlot* const> bound_kernels();

namespace detail {

/// Adds the tensors of one argument: itself, or those that collect_tensors(list, argument) of its type finds.
template <class Declared, class Argument>
void add_tensors(std::vector<TensorArgument>& list, const Argument& argument) {
  if constexpr (std::is_same_v<Argument, Tensor>)
    list.push_back({&argument, !std::is_const_v<std::remove_reference_t<Declared>>});
  else if constexpr (requires { collect_tensors(list, argument); })
    collect_tensors(list, argument);
}

}  // namespace detail

template <class Signature>
class Kernel;

template <class... Args>
class Kernel<void(Args...)> final : public KernelSlot {
 public:
  using Function = void (*)(Step&, Args...);
  using KernelSlot::KernelSlot;

  /// For static initialisers; returns true. Other devices than the CPU get their work from functions that leave it out
  /// where a step does not compute, so that all of their kernels can be called.
  bool bind(DeviceKind kind, Function function, KernelMemory memory = KernelMemory::none) {
    bind_any(kind, reinterpret_cast<Any>(function), kind == DeviceKind::cpu ? memory : KernelMemory::workspace);
    return true;
  }
  /// Runs the implementation of the step's device. Throws NotAvailable when there is none.
  void operator()(Step& step, std::type_identity_t<Args>... args) const {
    const auto kind = static_cast<std::size_t>(step.device().kind);
    const auto function = reinterpret_cast<Function>(functions_[kind]);
    if (function == nullptr) throw_not_available(step.device().kind);
    KernelObserver* observer = step.observer();
    if (observer != nullptr) observer->before(name_);
    if (step.computes() || memory_[kind] == KernelMemory::workspace) function(step, std::forward<Args>(args)...);
    if (observer != nullptr) observer->after(name_);
    if (!step.computes()) return;
    called_.store(true, std::memory_order_relaxed);
    if (observer == nullptr) return;
    std::vector<TensorArgument> tensors;
    // Kernels take references and numbers: nothing was moved from.
    (detail::add_tensors<Args>(tensors, args), ...);  // NOLINT(bugprone-use-after-move)
    observer->tensors(name_, tensors);
  }
};

}  // namespace engram
