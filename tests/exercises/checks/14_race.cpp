#include "tests/exercises/14_race.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "cuda/launch.hpp"
#include "cuda/shared.cuh"
#include "tests/exercises/checks/all.hpp"
#include "tests/simulated/device_fixture.hpp"

namespace engram::exercises::check_14 {
namespace {

struct Answer {
  std::function<void(Step& step, const float* x, float* sums, int blocks, int threads)> sums;
};

enum class Barriers { none, before_the_loop, everyone_writes, first_thread_adds };

template <Barriers kBarriers>
__global__ void flawed_sum(const float* x, float* sums) {
  float* values = cuda::dynamic_shared<float>();
  const int t = static_cast<int>(threadIdx.x);
  values[t] = x[blockIdx.x * blockDim.x + threadIdx.x];
  if constexpr (kBarriers == Barriers::before_the_loop || kBarriers == Barriers::first_thread_adds) __syncthreads();
  if constexpr (kBarriers == Barriers::first_thread_adds) {
    for (unsigned i = 1; i < blockDim.x && t == 0; ++i) values[0] += values[i];
  } else {
    for (int half = static_cast<int>(blockDim.x) / 2; half > 0; half /= 2) {
      if constexpr (kBarriers == Barriers::everyone_writes) __syncthreads();
      if (t < half) values[t] += values[t + half];
    }
  }
  if (t == 0 || kBarriers == Barriers::everyone_writes) sums[blockIdx.x] = values[t];
}

template <Barriers kBarriers>
Answer with() {
  return {[](Step& step, const float* x, float* sums, int blocks, int threads) {
    cuda::launch(step, {.blocks = blocks, .threads = threads, .shared_bytes = std::size_t(threads) * sizeof(float)},
                 flawed_sum<kBarriers>, x, sums);
  }};
}

std::string name_of(const simulated::RunOptions& options) {
  switch (options.order) {
    case simulated::RunOrder::forward:
      return "forward";
    case simulated::RunOrder::reversed:
      return "reversed";
    case simulated::RunOrder::shuffled:
      return fmt::format("shuffled:{}", options.seed);
  }
  return {};
}

void run(const Answer& answer, std::vector<Part>& parts) {
  cuda::tests::DeviceFixture device;
  for (const simulated::RunOptions& options : cuda::tests::run_orders())
    for (const int threads : {1, 64, 256}) {
      device.options() = options;
      std::vector<float> x;
      for (int i = 0; i < 3 * threads; ++i) x.push_back(static_cast<float>(i % 7 + i / threads));
      std::vector<float> sums(3, static_cast<float>(kUnwritten));
      answer.sums(device.step, x.data(), sums.data(), 3, threads);
      parts.push_back({fmt::format("sums of three blocks of {} thread{}, run in the order {}", threads,
                                   threads == 1 ? "" : "s", name_of(options)),
                       {sums.begin(), sums.end()}});
    }
}

}  // namespace

Check check() {
  return make_check<Answer>(
      14, "14_race", "a kernel that races",
      {.answer = {block_sums},
       .truth = with<Barriers::first_thread_adds>(),
       .mistakes =
           {{with<Barriers::none>(),
             "no thread waits for another. Here each runs until it must wait, so thread 0 reads numbers that others "
             "have "
             "not yet written (nan: shared memory holds anything at first). What must have happened before a thread "
             "may read values[t + half]? __syncthreads() waits until every thread of the block is there."},
            {with<Barriers::before_the_loop>(),
             "the first round is right now. But the second round reads what the first round of other threads wrote: "
             "all "
             "must wait before every round."},
            {with<Barriers::everyone_writes>(),
             "every thread writes its number to sums[b], the last one remains. Only thread 0 has the sum."}},
       .run = run});
}

}  // namespace engram::exercises::check_14
