#pragma once
/// Reports of ids outside a table, on devices that work behind the host: looking at the ids would stop the device, so
/// it looks itself, and the host asks when it waits for the device in any case.

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/allocator.hpp"
#include "core/backend.hpp"
#include "core/tensor.hpp"

namespace engram {

class WrongIds {
 public:
  static constexpr int kPlaceBits = 31;

  explicit WrongIds(Backend& backend) : backend_(&backend), memory_(backend) {}

  /// The number by which kernels::replace_wrong_ids names this lookup: the same for equal arguments, for as long as
  /// this object lives, because a captured step keeps it.
  std::int64_t lookup(std::string_view op, std::string_view what, std::int64_t below);
  /// What the kernel reports into.
  Tensor& report();
  /// Throws Error when a kernel has found a wrong id since the last call. Waits for the device where anything was
  /// looked up; without lookups it does nothing. Not while a step is captured.
  void check();

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  struct Lookup {
    std::string op, what;
    std::int64_t below;
  };

  Backend* backend_;
  HeapAllocator memory_;
  std::vector<Lookup> lookups_;
  Tensor report_;  // [1] i64, made with the first lookup
};

}  // namespace engram
