#pragma once
/// Memory of one step: best fit over the free intervals of a slab. Addresses are a pure function of the sequence
/// of requests, so equal steps have equal addresses (which a captured GPU step needs). When the slab is too small,
/// further slabs are taken; the end of the step replaces them by one of the measured peak, or a little more where
/// steps leave gaps, until equal steps fit.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <set>
#include <vector>

#include "core/allocator.hpp"

namespace engram {

class Arena final : public Allocator {
 public:
  /// Takes its slabs from `source`, which must outlive it. `poison`: freed host memory is filled with NaN bytes.
  explicit Arena(Allocator& source, bool poison = false);
  ~Arena() override;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  void* allocate(std::size_t bytes) override;
  void free(void* data, std::size_t bytes) noexcept override;
  std::pmr::memory_resource& objects() override { return objects_; }

  /// Call when everything of the step was let go: its tapes with what they hold, tensors and variables, gradients of
  /// tables (an optimiser's update or ParameterStore::clear_row_gradients() does that). Throws Error when
  /// `bytes_in_use()` is not zero: something survived the step. Joins the slabs into one for the peak seen so far, and
  /// for the gaps.
  void end_step();

  std::size_t bytes_in_use() const { return in_use_; }
  std::size_t peak_bytes() const { return peak_; }      ///< most bytes in use at once since the arena was made
  std::size_t slab_bytes() const { return capacity_; }  ///< what is taken from the source
  std::size_t slab_count() const { return slabs_.size(); }
  /// Changes whenever addresses of a step like the one before may: a step that was captured before it is void.
  std::int64_t generation() const { return generation_; }

 private:
  struct Slab {
    std::byte* data;
    std::size_t bytes;
  };
  void add_slab(std::size_t bytes);
  /// A slab that a request of `size` fits into.
  void grow(std::size_t size);
  void release_slabs();
  void insert_free(std::byte* begin, std::size_t bytes);
  static std::size_t rounded(std::size_t bytes) {
    return bytes == 0 ? kAlignment : (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  Allocator* source_;
  bool poison_;
  std::vector<Slab> slabs_;
  std::pmr::unsynchronized_pool_resource objects_;
  std::pmr::map<std::byte*, std::size_t> free_by_address_{&objects_};
  std::pmr::set<std::pair<std::size_t, std::byte*>> free_by_size_{&objects_};
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::size_t capacity_ = 0;
  std::size_t grown_ = 0;  // bytes of this step's requests that a slab was added for
  std::int64_t generation_ = 0;
};

}  // namespace engram
