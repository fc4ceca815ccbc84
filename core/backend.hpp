#pragma once
/// What a device offers beside its kernels: memory, copies and order. Backends register themselves when the
/// program starts; nothing includes their folders.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "core/device.hpp"

namespace engram {

enum class CopyKind : unsigned char { host_to_device, device_to_host, device_to_device };

/// A recorded step that can be run again with the same addresses.
class Replay {
 public:
  virtual ~Replay() = default;
  virtual void run() = 0;
  /// How many kernels and copies it keeps on the device, each of a few KiB there; 0 where the host calls them.
  virtual std::size_t nodes() const { return 0; }
};

/// A place in the order of a device's work.
class Mark {
 public:
  virtual ~Mark() = default;
  /// Seconds that the device took from `earlier`, a mark of the same backend, to this one. Waits until both have
  /// passed.
  virtual double seconds_since(const Mark& earlier) const = 0;
};

class KernelObserver;

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Device device() const = 0;
  /// `bytes` bytes of device memory (at least one), aligned to Allocator::kAlignment.
  /// Throws DeviceError saying what was asked for.
  virtual void* reserve(std::size_t bytes) = 0;
  virtual void release(void* data) noexcept = 0;
  /// In order with the kernels of this backend. device_to_host returns when the bytes are there.
  virtual void copy(void* to, const void* from, std::size_t bytes, CopyKind kind) = 0;
  /// Waits for all work handed to the device. Never called inside a step.
  virtual void synchronize() = 0;
  /// The place behind all that was handed over so far. Not while a step is captured. Here: waits, and looks at the
  /// host's clock.
  virtual std::unique_ptr<Mark> mark();
  /// Runs `step` once and returns a way to run it again with the same addresses. nullptr: the device has no memory for
  /// what was recorded; `step` was called, but the device has done nothing of it.
  virtual std::unique_ptr<Replay> capture(std::function<void()> step) = 0;
  /// Calls `action` at this place of a step. While a step is captured, it is called when the step is run, between what
  /// the step hands over before it and after it, and in every replay: it must not depend on anything that is gone when
  /// the step is. It may wait for the device and use memory of the host, which a captured step must not. Anything of
  /// the step that needs what an action has done must be on the device, or in an action after it.
  virtual void between(std::function<void()> action) { action(); }
  /// Whether the host hands work to the device and goes on, so that reading a result waits for all work before it, and
  /// a captured step spares the host the work of handing it over: what a step calls on the host then runs only while
  /// it is captured, and it may neither read nor write memory of the host (copy() throws). false: results are there at
  /// once, and replaying is calling.
  virtual bool works_behind() const { return false; }
  /// Whether a step is being captured just now.
  virtual bool capturing() const { return false; }

  /// Whether numbers are computed and kept. false: memory is only counted (core/counting_backend.hpp); kernels are not
  /// run, what copy() reads is zero, and what it writes is lost.
  virtual bool computes() const { return true; }
  /// The device that kernels know: itself, or the one that a backend stands in front of.
  virtual Backend& device_backend() { return *this; }

  /// Whether its memory is the host's, so that what carries that to other ranks serves this device too.
  virtual bool shares_host_memory() const { return true; }
  /// Bytes in use through reserve(), where the device has memory of its own; 0 where it is the host's.
  virtual std::size_t reserved_bytes() const { return 0; }

  /// Whether the device has instructions for products of bf16 matrices: where it has none, ProductPrecision::bf16 gives
  /// the same numbers, but no speed.
  virtual bool multiplies_bf16() const { return false; }

  /// Exponentials of f32 that the device can take in a second, where its facts say so; 0: to be measured.
  virtual double exponentials_per_second() const { return 0; }

  /// Whether attention's backward pass makes use of the weights that attention_forward kept.
  virtual bool keeps_attention() const { return false; }

  /// Whether the kernels take bf16 activations (docs/reference/numerics.md).
  virtual bool stores_bf16() const { return false; }

  /// Which of the machine's instructions decide the last bits of results, where the program or a library chooses them
  /// when it runs; empty: none do.
  virtual std::string instructions() const { return {}; }

  /// Observes steps for a profiler that watches this program; nullptr when none does. Belongs to the backend.
  virtual KernelObserver* profiler() { return nullptr; }

  /// How many threads of the host the kernels use, from 1 on; 1 where they run on a device of their own. Results do not
  /// depend on it.
  virtual int threads() const { return 1; }
  /// Only between steps. Without effect where kernels run on a device of their own.
  virtual void set_threads(int) {}
};

/// What capture() does where a step runs on the host: calls it, and keeps it to be called again.
std::unique_ptr<Replay> capture_by_calling(std::function<void()> step);

/// Makes the backend of device number `index`; throws DeviceError when the machine has no such device.
using BackendFactory = std::unique_ptr<Backend> (*)(int index);

/// Called by static initialisers of the device folders; returns true.
bool register_backend(DeviceKind kind, BackendFactory factory);
/// Opens a device. Throws NotAvailable, with the kinds this build has, when it was built without that one.
std::unique_ptr<Backend> open_backend(Device device);

}  // namespace engram
