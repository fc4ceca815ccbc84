#include "core/arena.hpp"

#include <random>

#include "core/backend.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/guarded_allocator.hpp"

namespace engram::arena_test {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

class Fixture {
 public:
  std::unique_ptr<Backend> backend = open_backend({});
  harness::GuardedAllocator source{*backend};
  Arena arena{source};

  std::byte* take(std::size_t bytes) { return static_cast<std::byte*>(arena.allocate(bytes)); }
};

TEST_CASE("arena: blocks are aligned, disjoint and counted in whole units", "[core]") {
  Fixture f;
  std::byte* a = f.take(1);
  std::byte* b = f.take(257);
  std::byte* none = f.take(0);
  CHECK(reinterpret_cast<std::uintptr_t>(a) % Allocator::kAlignment == 0);
  CHECK(b == a + 256);
  CHECK(none == b + 512);
  CHECK(f.arena.bytes_in_use() == 1024);
  f.arena.free(a, 1);
  f.arena.free(b, 257);
  f.arena.free(none, 0);
  CHECK(f.arena.bytes_in_use() == 0);
  CHECK(f.arena.peak_bytes() == 1024);
}

TEST_CASE("arena: the smallest interval that fits is taken, the lowest of equals", "[core]") {
  Fixture f;
  std::byte* large = f.take(1024);
  std::byte* wall1 = f.take(256);
  std::byte* small1 = f.take(512);
  std::byte* wall2 = f.take(256);
  std::byte* small2 = f.take(512);
  std::byte* wall3 = f.take(256);
  f.arena.free(small2, 512);
  f.arena.free(large, 1024);
  f.arena.free(small1, 512);
  CHECK(f.take(400) == small1);
  CHECK(f.take(512) == small2);
  CHECK(f.take(512) == large);  // the rest of the large one is smaller than the rest of the slab
  CHECK(f.take(512) == large + 512);
  f.arena.free(wall1, 256);
  f.arena.free(wall2, 256);
  f.arena.free(wall3, 256);
}

TEST_CASE("arena: free neighbours are merged in every order", "[core]") {
  const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& order : orders) {
    Fixture f;
    std::byte* block[] = {f.take(256), f.take(512), f.take(256)};
    const std::size_t bytes[] = {256, 512, 256};
    std::byte* wall = f.take(kMiB - 1024);  // the slab is full
    for (const int i : order) f.arena.free(block[i], bytes[i]);
    CHECK(f.take(1024) == block[0]);
    CHECK(f.arena.slab_count() == 1);
    f.arena.free(wall, kMiB - 1024);
  }
}

// A sequence of requests as a step makes them: addresses relative to the slab.
std::vector<std::ptrdiff_t> addresses_of(unsigned seed, Arena& arena) {
  std::mt19937 random(seed);
  std::vector<std::pair<void*, std::size_t>> live;
  std::vector<std::ptrdiff_t> offsets;
  std::byte* first = nullptr;
  for (int i = 0; i < 2000; ++i) {
    if (live.size() > 20 || (random() % 3 == 0 && !live.empty())) {
      const std::size_t victim = random() % live.size();
      arena.free(live[victim].first, live[victim].second);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      continue;
    }
    const std::size_t bytes = random() % 20000;
    auto* data = static_cast<std::byte*>(arena.allocate(bytes));
    if (first == nullptr) first = data;
    offsets.push_back(data - first);
    live.emplace_back(data, bytes);
  }
  for (const auto& [data, bytes] : live) arena.free(data, bytes);
  return offsets;
}

TEST_CASE("arena: addresses are a function of the requests", "[core]") {
  Fixture f;
  const auto first = addresses_of(1, f.arena);
  f.arena.end_step();
  CHECK(addresses_of(1, f.arena) == first);
  Fixture g;
  CHECK(addresses_of(1, g.arena) == first);
  CHECK(addresses_of(2, g.arena) != first);
  CHECK(f.arena.slab_count() == 1);
}

TEST_CASE("arena: several slabs become one of the peak at the end of the step", "[core]") {
  Fixture f;
  std::byte* a = f.take(kMiB);
  std::byte* b = f.take(3 * kMiB);
  std::byte* c = f.take(kMiB / 2);
  CHECK(f.arena.slab_count() == 3);
  CHECK(f.arena.peak_bytes() == 4 * kMiB + kMiB / 2);
  f.arena.free(a, kMiB);
  f.arena.free(b, 3 * kMiB);
  f.arena.free(c, kMiB / 2);
  f.arena.end_step();
  CHECK(f.arena.slab_count() == 1);
  CHECK(f.arena.slab_bytes() >= f.arena.peak_bytes());
  CHECK(f.arena.slab_bytes() == f.source.bytes_in_use());

  // The same step now fits, and finds the same addresses every time.
  std::byte* again[2][3];
  for (auto& step : again) {
    step[0] = f.take(kMiB);
    step[1] = f.take(3 * kMiB);
    step[2] = f.take(kMiB / 2);
    CHECK(f.arena.slab_count() == 1);
    f.arena.free(step[0], kMiB);
    f.arena.free(step[1], 3 * kMiB);
    f.arena.free(step[2], kMiB / 2);
    f.arena.end_step();
  }
  for (int i = 0; i < 3; ++i) CHECK(again[0][i] == again[1][i]);
}

TEST_CASE("arena: equal steps that leave gaps fit in one slab after a few, at the same addresses", "[core]") {
  Fixture f;
  const auto step = [&f] {
    std::byte* const first = f.take(6 * kMiB);
    std::byte* const wall = f.take(kMiB);
    f.arena.free(first, 6 * kMiB);
    std::byte* const last = f.take(7 * kMiB);  // behind the wall: before it is a gap
    const std::size_t slabs = f.arena.slab_count();
    f.arena.free(wall, kMiB);
    f.arena.free(last, 7 * kMiB);
    f.arena.end_step();
    return slabs;
  };
  int steps = 1;
  while (step() > 1) {
    CHECK(f.arena.slab_count() == 1);
    REQUIRE(++steps < 12);
  }
  CHECK(f.arena.peak_bytes() == 8 * kMiB);
  CHECK(f.arena.slab_bytes() <= 16 * kMiB);
  const std::int64_t generation = f.arena.generation();
  for (int i = 0; i < 3; ++i) CHECK(step() == 1);
  CHECK(f.arena.generation() == generation);
}

TEST_CASE("arena: where there is no room to grow by half, what is needed is taken", "[core]") {
  // Gives no more than so many bytes.
  struct Limited final : Allocator {
    explicit Limited(Allocator& from) : source(&from) {}
    void* allocate(std::size_t bytes) override {
      if (bytes > left) throw OutOfMemory("nothing left");
      left -= bytes;
      return source->allocate(bytes);
    }
    void free(void* data, std::size_t bytes) noexcept override {
      left += bytes;
      source->free(data, bytes);
    }
    std::pmr::memory_resource& objects() override { return source->objects(); }
    Allocator* source;
    std::size_t left = 10 * kMiB;
  };
  Fixture f;
  Limited limited(f.source);
  Arena arena(limited);
  void* const large = arena.allocate(8 * kMiB);
  void* const small = arena.allocate(kMiB + kMiB / 2);  // of the 4 MiB that it would rather take
  CHECK(arena.slab_bytes() == 9 * kMiB + kMiB / 2);
  CHECK_THROWS_AS(arena.allocate(kMiB), OutOfMemory);
  arena.free(large, 8 * kMiB);
  arena.free(small, kMiB + kMiB / 2);
  CHECK(arena.bytes_in_use() == 0);
}

TEST_CASE("arena: intervals of two slabs are never merged", "[core]") {
  // A source that hands out neighbouring slabs.
  class Neighbours final : public Allocator {
   public:
    explicit Neighbours(Backend& backend) : backend_(&backend), block_(backend.reserve(8 * kMiB)) {}
    ~Neighbours() override { backend_->release(block_); }
    void* allocate(std::size_t bytes) override {
      return static_cast<std::byte*>(block_) + std::exchange(used_, used_ + bytes);
    }
    void free(void*, std::size_t) noexcept override {}

   private:
    Backend* backend_;
    void* block_;
    std::size_t used_ = 0;
  };
  const std::unique_ptr<Backend> backend = open_backend({});
  Neighbours source(*backend);
  Arena arena(source);
  void* a = arena.allocate(kMiB);
  void* b = arena.allocate(kMiB);
  REQUIRE(static_cast<std::byte*>(b) == static_cast<std::byte*>(a) + kMiB);
  arena.free(a, kMiB);
  arena.free(b, kMiB);
  void* both = arena.allocate(2 * kMiB);
  CHECK(both != a);
  CHECK(arena.slab_count() == 3);
  arena.free(both, 2 * kMiB);
}

TEST_CASE("arena: something that survives the step is an error", "[core]") {
  Fixture f;
  std::byte* kept = f.take(300);
  CHECK_THROWS_WITH(f.arena.end_step(),
                    "arena: everything of a step must be let go at its end, 512 bytes are still in use\n"
                    "  let its tapes, variables and tensors go before end_step(), and copy what must survive into its "
                    "own memory;\n  gradients of tables that no update took: ParameterStore::clear_row_gradients()");
  f.arena.free(kept, 300);
  CHECK_NOTHROW(f.arena.end_step());
}

TEST_CASE("arena: all slabs go back to the source", "[core]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  harness::GuardedAllocator source(*backend);
  {
    Arena arena(source);
    arena.free(arena.allocate(kMiB), kMiB);
    arena.free(arena.allocate(5 * kMiB), 5 * kMiB);
    CHECK(source.bytes_in_use() == arena.slab_bytes());
  }
  CHECK(source.bytes_in_use() == 0);
  CHECK(source.faults().empty());
}

TEST_CASE("arena: poison fills freed memory with NaN", "[core]") {
  const std::unique_ptr<Backend> backend = open_backend({});
  harness::GuardedAllocator source(*backend, 0);
  Arena arena(source, true);
  auto* numbers = static_cast<float*>(arena.allocate(3 * sizeof(float)));
  numbers[0] = numbers[1] = numbers[2] = 1;
  arena.free(numbers, 3 * sizeof(float));
  CHECK(std::isnan(numbers[0]));
  CHECK(std::isnan(numbers[2]));
  Arena plain(source);
  auto* kept = static_cast<float*>(plain.allocate(sizeof(float)));
  *kept = 1;
  plain.free(kept, sizeof(float));
  CHECK(*kept == 1);
}

}  // namespace
}  // namespace engram::arena_test
