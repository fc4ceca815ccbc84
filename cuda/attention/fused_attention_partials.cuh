#pragma once
/// Sums over all queries of all streams, made by several blocks, each of which takes a share of the queries' tiles, and
/// added up in order of the shares by a second launch. How many shares there are depends on shapes alone.

#include "cuda/attention/fused_attention_call.cuh"
#include "cuda/storage_access.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// One of `shares` parts of a head's tiles of queries, which are numbered stream by stream.
class QueryTiles {
 public:
  template <class T>
  __device__ QueryTiles(const FusedCall<T>& call, int rank, int share, int shares) {
    const std::int64_t all = std::int64_t{call.streams} * call.tiles;
    const int begin = static_cast<int>(all * share / shares);
    left_ = static_cast<int>(all * (share + 1) / shares) - begin;
    tile_ = begin % call.tiles;
    place_ = call.place(rank, begin / call.tiles);
  }
  __device__ bool any() const { return left_ > 0; }
  __device__ const Place& place() const { return place_; }
  __device__ int first_query() const { return tile_ * kTileRows; }
  template <class T>
  __device__ __forceinline__ void advance(const FusedCall<T>& call, int rank) {
    --left_;
    if (++tile_ < call.tiles) return;
    tile_ = 0;
    place_ = call.place(rank, place_.stream + 1 < call.streams ? place_.stream + 1 : 0);
  }

 private:
  int left_, tile_;
  Place place_;
};

/// f32 sums of every head's rows, share by share; heads by rank.
struct Partials {
  float* data;
  std::int64_t first[kMostFusedHeads];  ///< element
  int rows[kMostFusedHeads];
  int shares[kMostFusedHeads];

  /// nullptr for a row that the head does not have, or for no data at all.
  __device__ float* row(int rank, int share, int number, int depth) const {
    if (data == nullptr || number < 0 || number >= rows[rank]) return nullptr;
    return data + first[rank] + (static_cast<std::int64_t>(share) * rows[rank] + number) * depth;
  }
};

/// Shares for a head whose result has this many tiles: so many blocks that all heads together fill a large card four
/// times, so that little is lost in the last round, but none without work.
inline int query_shares(int heads, std::int64_t result_tiles, std::int64_t query_tiles) {
  constexpr std::int64_t kBlocks = 1536;  // four times three for each of 128 multiprocessors
  const std::int64_t blocks_of_a_share = std::max<std::int64_t>(1, heads * result_tiles);
  const std::int64_t wanted = (kBlocks + blocks_of_a_share - 1) / blocks_of_a_share;
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, query_tiles)));
}

/// Lays the sums of heads out one after the other, rows_of(rank) rows each; data is left out. Returns the elements.
template <class RowsOf>
std::int64_t plan_partials(Partials& partials, int heads, int depth, std::int64_t query_tiles, RowsOf rows_of) {
  std::int64_t elements = 0;
  for (int rank = 0; rank < heads; ++rank) {
    partials.rows[rank] = rows_of(rank);
    partials.shares[rank] = query_shares(heads, tiles_of(partials.rows[rank]), query_tiles);
    partials.first[rank] = elements;
    elements += static_cast<std::int64_t>(partials.rows[rank]) * partials.shares[rank] * depth;
  }
  return elements;
}

inline constexpr int kFinishThreads = 256;

/// Where the sums go: row r of head h begins at element h head_stride + r row_stride. With a head_stride of 0, all
/// heads are added up.
struct PartialsPlaces {
  std::int64_t rows, row_stride, head_stride;
};

/// Two neighbouring elements per thread; blockIdx.y is the rank unless heads are added up.
template <class T>
__global__ void __launch_bounds__(kFinishThreads)
    finish_partials(HeadTable table, int heads, int depth, Partials partials, PartialsPlaces places,
                    TargetElements<T> target) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kFinishThreads + threadIdx.x) * 2;
  const std::int64_t row = i / depth, column = i % depth;
  if (row >= places.rows) return;
  const int rank = static_cast<int>(blockIdx.y), end = places.head_stride == 0 ? heads : rank + 1;
  Pack<float, 2> sum{};
  for (int r = rank; r < end; ++r)
    for (int share = 0; share < partials.shares[r]; ++share)
      if (const float* const from = partials.row(r, share, static_cast<int>(row), depth); from != nullptr) {
        const Pack<float, 2> part = load<2>(from + column);
        sum.value[0] += part.value[0];
        sum.value[1] += part.value[1];
      }
  T* const to = target.data + table.head[rank] * places.head_stride + row * places.row_stride + column;
  write_two(to, sum.value[0], sum.value[1], target.write);
}

/// Into a gradient of f32, as those of parameters are, or of bf16.
inline void finish_partials_into(Step& step, const HeadTable& table, int heads, int depth, const Partials& partials,
                                 const Target& target, const PartialsPlaces& places) {
  if (!target) return;
  const std::int64_t pairs = places.rows * depth / 2;
  const LaunchSize size{.blocks = {(pairs + kFinishThreads - 1) / kFinishThreads, places.head_stride == 0 ? 1 : heads},
                        .threads = kFinishThreads};
  if (target.tensor.dtype() == DType::bf16)
    launch(step, size, finish_partials<bf16>, table, heads, depth, partials, places, target);
  else
    launch(step, size, finish_partials<float>, table, heads, depth, partials, places, target);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
