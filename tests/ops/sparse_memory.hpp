#pragma once
/// Tables larger than the memory of the machine, of which a test touches a few rows.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/allocator.hpp"
#include "core/error.hpp"
#include "core/tensor.hpp"

namespace engram::harness {

/// Memory that exists where it is touched only, zero before that.
class SparseMemory final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    void* const data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data == MAP_FAILED) throw Error(text("test: no ", bytes, " bytes of addresses"));
    return data;
  }
  void free(void* data, std::size_t bytes) noexcept override { munmap(data, bytes); }
};

/// All elements of a tensor of SparseMemory that are not zero, by number, at the cost of those pages alone that exist.
template <class T>
std::map<std::int64_t, double> elements_other_than_zero(const Tensor& tensor) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::vector<unsigned char> exists((tensor.bytes() + page - 1) / page);
  if (mincore(const_cast<void*>(static_cast<const void*>(tensor.raw())), tensor.bytes(), exists.data()) != 0)
    throw Error("test: mincore must say which pages exist");
  const T* const numbers = tensor.data<const T>();
  const auto of_page = static_cast<std::int64_t>(page / sizeof(T));
  std::map<std::int64_t, double> found;
  for (std::size_t at = 0; at < exists.size(); ++at) {
    if ((exists[at] & 1) == 0) continue;
    const std::int64_t begin = static_cast<std::int64_t>(at) * of_page;
    for (std::int64_t i = begin; i < std::min(begin + of_page, tensor.count()); ++i)
      if (const auto number = static_cast<double>(static_cast<Compute<T>>(numbers[i])); number != 0) found[i] = number;
  }
  return found;
}

}  // namespace engram::harness
