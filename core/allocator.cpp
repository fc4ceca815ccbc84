#include "core/allocator.hpp"

#include "core/backend.hpp"

namespace engram {

void* HeapAllocator::allocate(std::size_t bytes) { return backend_->reserve(bytes); }
void HeapAllocator::free(void* data, std::size_t) noexcept { backend_->release(data); }

}  // namespace engram
