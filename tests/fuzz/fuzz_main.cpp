/// What libFuzzer calls: one reader, which ENGRAM_FUZZ_READER names. Alone, `engram_fuzz FILE ...` reads files once,
/// for those that were found.
///
/// Beside what sanitizers and libFuzzer watch (reports, time, memory of the whole process) the memory that an input
/// takes at once is held against its size: 8 MiB, and 256 bytes for each of its own. A header of a few bytes that asks
/// for gigabytes is found by the first such input, not by the one that no machine has room for.

#include <sanitizer/allocator_interface.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "core/log.hpp"
#include "tests/fuzz/reader.hpp"

namespace {

constexpr std::int64_t kFreeBytes = std::int64_t{8} << 20, kBytesPerByte = 256;

const engram::fuzz::Reader* reader = nullptr;
std::atomic<std::int64_t> in_use = 0, most = INT64_MAX;

void allocated(const volatile void*, std::size_t bytes) {
  if (in_use.fetch_add(static_cast<std::int64_t>(bytes)) + static_cast<std::int64_t>(bytes) <= most) return;
  most = INT64_MAX;
  std::fprintf(stderr, "engram_fuzz: an input must not take that much memory at once: %lld bytes more\n",
               static_cast<long long>(bytes));
  std::abort();
}
void freed(const volatile void* block) {
  if (block != nullptr)
    in_use.fetch_sub(static_cast<std::int64_t>(__sanitizer_get_allocated_size(const_cast<const void*>(block))));
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* const name = std::getenv("ENGRAM_FUZZ_READER");
  reader = engram::fuzz::find_reader(name == nullptr ? "" : name);
  if (reader == nullptr) {
    std::fprintf(stderr, "engram_fuzz: ENGRAM_FUZZ_READER must be the name of a reader, got '%s'; they are\n",
                 name == nullptr ? "" : name);
    for (const engram::fuzz::Reader& one : engram::fuzz::all_readers())
      std::printf("%.*s %zu %.*s\n", static_cast<int>(one.name.size()), one.name.data(), one.most_bytes,
                  static_cast<int>(one.reads.size()), one.reads.data());
    std::exit(name == nullptr ? 0 : 2);
  }
  engram::send_log_to([](engram::LogLevel, std::string_view) {});
  __sanitizer_install_malloc_and_free_hooks(allocated, freed);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static bool is_warm = false;
  if (is_warm) most = in_use + kFreeBytes + kBytesPerByte * static_cast<std::int64_t>(size);
  reader->read({reinterpret_cast<const char*>(bytes), size});
  most = INT64_MAX;
  is_warm = true;  // what the first input has made for good is of all
  return 0;
}
