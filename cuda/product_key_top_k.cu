#include "core/kernels/product_key_top_k.hpp"

#include "core/rules/score_order.hpp"
#include "cuda/shared.cuh"
#include "cuda/warp.cuh"

namespace engram::cuda::product_key_top_k_kernels {
namespace {

/// How far a search by digits has come. A key is the image of a score, the best largest, and below it the complement of
/// its place, so that no two are equal: of equal scores the first place is the best.
template <class T>
struct FoundDigits {
  using Unsigned = std::make_unsigned_t<ScoreImage<T>>;
  Unsigned image = 0, image_mask = 0;
  std::uint32_t place = 0, place_mask = 0;

  __device__ static Unsigned image_of(T score) {
    return static_cast<Unsigned>(score_image(score)) ^ (Unsigned{1} << (8 * sizeof(T) - 1));
  }
  __device__ bool agrees(T score, std::int64_t at) const {
    return (image_of(score) & image_mask) == image && (~static_cast<std::uint32_t>(at) & place_mask) == place;
  }
  __device__ bool reaches(T score, std::int64_t at) const {
    const Unsigned mine = image_of(score) & image_mask;
    return mine > image || (mine == image && (~static_cast<std::uint32_t>(at) & place_mask) >= place);
  }
};

constexpr int kDigits = 256;

/// The digit that the key of rank `rank` (from 1, the best) has, by how often each occurs, the rank among those with
/// this digit, and whether it is the last of them. By one warp.
struct DigitOfRank {
  unsigned digit, rank, is_last;
};
__device__ __forceinline__ void find_digit(const unsigned* counts, unsigned rank, DigitOfRank& found) {
  constexpr int kOwn = kDigits / kWarpLanes;
  const int lane = static_cast<int>(threadIdx.x);
  unsigned own = 0;
  for (int i = 0; i < kOwn; ++i) own += counts[kOwn * lane + i];
  unsigned reached = own;  // by this lane's digits and larger ones
  for (int distance = 1; distance < kWarpLanes; distance *= 2) {
    const unsigned more = __shfl_down_sync(kAllLanes, reached, distance);
    if (lane + distance < kWarpLanes) reached += more;
  }
  unsigned above = reached - own;
  if (above >= rank || reached < rank) return;
  int digit = kOwn * lane + kOwn - 1;
  for (; above + counts[digit] < rank; --digit) above += counts[digit];
  found = {static_cast<unsigned>(digit), rank - above, rank - above == counts[digit]};
}

/// best[0 .. k) = places of the k best of `count` scores, best first; of equal ones the first. By a block of kThreads
/// threads, between whose calls all memory is in order. images, chosen: k each, for its own use.
template <int kThreads, class T>
__device__ void select_best(const T* scores, std::int64_t count, std::int64_t k, ScoreImage<T>* images,
                            std::int32_t* chosen, std::int32_t* best) {
  __shared__ unsigned counts[kDigits];
  __shared__ DigitOfRank found;
  __shared__ unsigned size;
  const int thread = static_cast<int>(threadIdx.x);
  FoundDigits<T> digits;
  auto rank = static_cast<unsigned>(k);
  // Digit by digit from the highest, until all that agree so far are among the best.
  constexpr int kImageDigits = static_cast<int>(sizeof(T)), kAllDigits = kImageDigits + 4;
  for (int pass = 0; pass < kAllDigits; ++pass) {
    const bool of_image = pass < kImageDigits;
    const int shift = 8 * ((of_image ? kImageDigits : kAllDigits) - 1 - pass);
    for (int i = thread; i < kDigits; i += kThreads) counts[i] = 0;
    if (thread == 0) size = 0;
    __syncthreads();
    for (std::int64_t i = thread; i < count; i += kThreads) {
      if (!digits.agrees(scores[i], i)) continue;
      const std::uint64_t key = of_image ? FoundDigits<T>::image_of(scores[i]) : ~static_cast<std::uint32_t>(i);
      atomicAdd(&counts[(key >> shift) % kDigits], 1u);
    }
    __syncthreads();
    if (thread < kWarpLanes) find_digit(counts, rank, found);
    __syncthreads();
    using Unsigned = typename FoundDigits<T>::Unsigned;
    if (of_image) {
      digits.image |= static_cast<Unsigned>(found.digit) << shift;
      digits.image_mask |= Unsigned{kDigits - 1} << shift;
    } else {
      digits.place |= found.digit << shift;
      digits.place_mask |= std::uint32_t{kDigits - 1} << shift;
    }
    rank = found.rank;
    if (found.is_last != 0) break;
  }
  // Which threads come first changes the order here, but not the ranks.
  for (std::int64_t i = thread; i < count; i += kThreads) {
    if (!digits.reaches(scores[i], i)) continue;
    const unsigned at = atomicAdd(&size, 1u);
    images[at] = score_image(scores[i]);
    chosen[at] = static_cast<std::int32_t>(i);
  }
  __syncthreads();
  for (std::int64_t i = thread; i < k; i += kThreads) {
    const ScoreImage<T> mine = images[i];
    std::int64_t before = 0;
    for (std::int64_t j = 0; j < k; ++j)
      before += images[j] > mine || (images[j] == mine && chosen[j] < chosen[i]) ? 1 : 0;
    best[before] = chosen[i];
  }
  __syncthreads();
}

/// Sizes of a selection.
struct Sizes {
  std::int64_t rows, n, k, length, candidates;  // rows of all heads; length: of a set's sorted list
  int sets;

  /// Of the memory of one block, in which the widest elements come first.
  template <class T>
  ENGRAM_HD std::size_t block_bytes() const {
    return static_cast<std::size_t>(sets * length + candidates + k) * sizeof(T) +
           static_cast<std::size_t>((sets * length + 2 * k + 3) / 4 * 4) * sizeof(std::int32_t);
  }
};

/// ranks[set, i]: of candidate i, in ascending order of its ranks.
__global__ void __launch_bounds__(128) list_candidates(Sizes sizes, std::int32_t* ranks) {
  for (std::int64_t p = threadIdx.x; p < sizes.length; p += 128) {
    std::int64_t at = 0;
    for (std::int64_t before = 0; before < p; ++before)
      at += count_ranks_after(sizes.sets, sizes.length, sizes.k, before);
    for_each_rank_after(sizes.sets, sizes.length, sizes.k, p, [&](std::int64_t q, std::int64_t r) {
      ranks[at] = static_cast<std::int32_t>(p);
      ranks[sizes.candidates + at] = static_cast<std::int32_t>(q);
      if (sizes.sets > 2) ranks[2 * sizes.candidates + at] = static_cast<std::int32_t>(r);
      ++at;
    });
  }
}

/// A block takes every gridDim.x-th row. `memory`: block_bytes for each; where it is missing, shared memory has them.
template <class T, int kThreads>
__global__ void __launch_bounds__(kThreads) select_slots(Sizes sizes, const T* half_scores, const std::int32_t* ranks,
                                                         unsigned char* memory, T* scores, std::int64_t* ids) {
  const std::int64_t n = sizes.n, k = sizes.k, length = sizes.length;
  unsigned char* const own =
      memory == nullptr ? dynamic_shared<unsigned char>() : memory + blockIdx.x * sizes.block_bytes<T>();
  T* const list = reinterpret_cast<T*>(own);
  T* const sums = list + sizes.sets * length;
  auto* const images = reinterpret_cast<ScoreImage<T>*>(sums + sizes.candidates);
  auto* const places = reinterpret_cast<std::int32_t*>(images + k);
  std::int32_t* const chosen = places + sizes.sets * length;
  std::int32_t* const best = chosen + k;
  for (std::int64_t row = blockIdx.x; row < sizes.rows; row += gridDim.x) {
    for (int set = 0; set < sizes.sets; ++set) {
      const T* const of_set = half_scores + (row * sizes.sets + set) * n;
      std::int32_t* const sorted = places + set * length;
      select_best<kThreads>(of_set, n, length, images, chosen, sorted);
      for (std::int64_t p = threadIdx.x; p < length; p += kThreads) list[set * length + p] = of_set[sorted[p]];
    }
    __syncthreads();
    if (sizes.sets > 1) {
      for (std::int64_t i = threadIdx.x; i < sizes.candidates; i += kThreads) {
        T sum = list[ranks[i]];
        for (int set = 1; set < sizes.sets; ++set) sum += list[set * length + ranks[set * sizes.candidates + i]];
        sums[i] = sum;
      }
      __syncthreads();
      select_best<kThreads>(sums, sizes.candidates, k, images, chosen, best);
    }
    for (std::int64_t j = threadIdx.x; j < k; j += kThreads) {
      if (sizes.sets == 1) {
        scores[row * k + j] = list[j];
        ids[row * k + j] = places[j];
        continue;
      }
      scores[row * k + j] = sums[best[j]];
      std::int64_t id = 0;
      for (int set = 0; set < sizes.sets; ++set)
        id = id * n + places[set * length + ranks[set * sizes.candidates + best[j]]];
      ids[row * k + j] = id;
    }
    __syncthreads();
  }
}

/// More than this lies in global memory, of fewer blocks. A block may have 48 KiB of shared memory without asking for
/// more, and the kernel itself takes some 1 KiB of them.
constexpr std::size_t kMostSharedLists = 46 << 10;
constexpr std::int64_t kBlocksWithoutShared = 264;
/// Longer lists need more threads to be read.
constexpr std::int64_t kLongList = 8192;

void product_key_select(Step& step, const Tensor& half_scores, Tensor& scores, Tensor& ids) {
  dispatch_float(half_scores.dtype(), "product_key_select", [&]<class T>() {
    const Shape& shape = half_scores.shape();
    Sizes sizes{.rows = shape[0] * shape[1],
                .n = shape[3],
                .k = scores.shape()[2],
                .length = 0,
                .candidates = 0,
                .sets = static_cast<int>(shape[2])};
    sizes.length = sizes.k < sizes.n ? sizes.k : sizes.n;
    if (sizes.sets > 1) sizes.candidates = count_rank_tuples(sizes.sets, sizes.length, sizes.k);
    const Workspace ranks =
        step.workspace(static_cast<std::size_t>(sizes.sets * sizes.candidates) * sizeof(std::int32_t));
    if (sizes.sets > 1) launch(step, {.blocks = 1, .threads = 128}, list_candidates, sizes, ranks.data<std::int32_t>());
    const std::size_t bytes = sizes.block_bytes<T>();
    const bool shared = bytes <= kMostSharedLists;
    const std::int64_t blocks = shared || sizes.rows < kBlocksWithoutShared ? sizes.rows : kBlocksWithoutShared;
    const Workspace lists = step.workspace(shared ? 0 : bytes * static_cast<std::size_t>(blocks));
    const auto start = [&](auto kernel, int threads) {
      launch(step, {.blocks = blocks, .threads = threads, .shared_bytes = shared ? bytes : 0}, kernel, sizes,
             half_scores.data<const T>(), ranks.data<const std::int32_t>(),
             shared ? nullptr : lists.data<unsigned char>(), scores.data<T>(), ids.data<std::int64_t>());
    };
    if (sizes.n <= kLongList)
      start(&select_slots<T, 128>, 128);
    else
      start(&select_slots<T, 1024>, 1024);
  });
}

constexpr int kScatterWarps = 4;

/// A warp owns the gradient of one list of half-scores: lists [R, H, F] of n. Of lanes with one sub-key the first adds
/// for all of them, in order.
template <class T>
__global__ void __launch_bounds__(kWarpLanes* kScatterWarps)
    scatter(Sizes sizes, const T* dscores, const std::int64_t* ids, T* dhalf_scores) {
  const std::int64_t list = static_cast<std::int64_t>(blockIdx.x) * kScatterWarps + threadIdx.y;
  if (list >= sizes.rows * sizes.sets) return;
  const int lane = static_cast<int>(threadIdx.x);
  const std::int64_t row = list / sizes.sets;
  std::int64_t later = 1;  // slots for each sub-key of this set, given those of the sets before
  for (std::int64_t set = list % sizes.sets + 1; set < sizes.sets; ++set) later *= sizes.n;
  T* const to = dhalf_scores + list * sizes.n;
  for (std::int64_t i = lane; i < sizes.n; i += kWarpLanes) to[i] = 0;
  __syncwarp();
  for (std::int64_t base = 0; base < sizes.k; base += kWarpLanes) {
    const bool mine = base + lane < sizes.k;
    const std::int64_t j = row * sizes.k + base + lane;
    const std::int32_t place = mine ? static_cast<std::int32_t>(ids[j] / later % sizes.n) : -1;
    const T value = mine ? dscores[j] : T(0);
    T sum = mine ? to[place] : T(0);
    bool first = mine;
    for (int other = 0; other < kWarpLanes; ++other) {
      const std::int32_t its_place = __shfl_sync(kAllLanes, place, other);
      const T its_value = __shfl_sync(kAllLanes, value, other);
      if (its_place != place) continue;
      first = first && other >= lane;
      sum += its_value;
    }
    __syncwarp();
    if (first) to[place] = sum;
    __syncwarp();
  }
}

void product_key_scatter(Step& step, const Tensor& dscores, const Tensor& ids, Tensor& dhalf_scores) {
  dispatch_float(dscores.dtype(), "product_key_scatter", [&]<class T>() {
    const Shape& shape = dhalf_scores.shape();
    const Sizes sizes{.rows = shape[0] * shape[1],
                      .n = shape[3],
                      .k = ids.shape()[2],
                      .length = 0,
                      .candidates = 0,
                      .sets = static_cast<int>(shape[2])};
    const std::int64_t lists = sizes.rows * sizes.sets;
    launch(step, {.blocks = (lists + kScatterWarps - 1) / kScatterWarps, .threads = {kWarpLanes, kScatterWarps}},
           scatter<T>, sizes, dscores.data<const T>(), ids.data<const std::int64_t>(), dhalf_scores.data<T>());
  });
}

const bool bound = kernels::product_key_select.bind(kThisDevice, &product_key_select) &&
                   kernels::product_key_scatter.bind(kThisDevice, &product_key_scatter);

}  // namespace
}  // namespace engram::cuda::product_key_top_k_kernels
