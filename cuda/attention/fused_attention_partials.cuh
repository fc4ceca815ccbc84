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

  /// Of a row among the data; below 0 for one that the head does not have.
  __device__ __forceinline__ std::int64_t place(int rank, int share, int number, int depth) const {
    if (number < 0 || number >= rows[rank]) return -1;
    return first[rank] + (static_cast<std::int64_t>(share) * rows[rank] + number) * depth;
  }
  /// nullptr for such a row, or for no data at all.
  __device__ __forceinline__ float* row(int rank, int share, int number, int depth) const {
    const std::int64_t at = place(rank, share, number, depth);
    return data == nullptr || at < 0 ? nullptr : data + at;
  }
};

/// Shares for a head whose result has this many tiles: so many that all heads together have about that many blocks, but
/// none without work.
inline int query_shares(int heads, std::int64_t result_tiles, std::int64_t query_tiles, int blocks) {
  const std::int64_t blocks_of_a_share = std::max<std::int64_t>(1, heads * result_tiles);
  const std::int64_t wanted = (blocks + blocks_of_a_share - 1) / blocks_of_a_share;
  return static_cast<int>(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, query_tiles)));
}

/// Lays the sums of heads out one after the other, rows_of(rank) rows each; data is left out. Returns the elements.
template <class RowsOf>
std::int64_t plan_partials(const Step& step, Partials& partials, int heads, int depth, std::int64_t query_tiles,
                           RowsOf rows_of) {
  std::int64_t elements = 0;
  for (int rank = 0; rank < heads; ++rank) {
    partials.rows[rank] = rows_of(rank);
    partials.shares[rank] = query_shares(heads, tiles_of(partials.rows[rank]), query_tiles, share_blocks(step));
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

/// Shares of one result, and where their sums go.
struct PartialsResult {
  const float* partials;
  void* target;  ///< of f32 or bf16
  Write write;
};
/// One result or two alike, such as those of keys and of values.
struct PartialsResults {
  PartialsResult first, second;
};

/// Two neighbouring elements per thread; blockIdx.y is the rank unless heads are added up, blockIdx.z the result.
template <class T>
__global__ void __launch_bounds__(kFinishThreads)
    finish_partials(HeadTable table, int heads, int depth, Partials partials, PartialsPlaces places,
                    PartialsResults results) {
  const std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kFinishThreads + threadIdx.x) * 2;
  const std::int64_t row = i / depth, column = i % depth;
  if (row >= places.rows) return;
  const bool is_second = blockIdx.z != 0;
  const float* const data = is_second ? results.second.partials : results.first.partials;
  T* const target = static_cast<T*>(is_second ? results.second.target : results.first.target);
  const Write write = is_second ? results.second.write : results.first.write;
  const int rank = static_cast<int>(blockIdx.y), end = places.head_stride == 0 ? heads : rank + 1;
  Pack<float, 2> sum{};
  for (int r = rank; r < end; ++r)
    for (int share = 0; share < partials.shares[r]; ++share)
      if (const std::int64_t at = partials.place(r, share, static_cast<int>(row), depth); at >= 0) {
        const Pack<float, 2> part = load<2>(data + at + column);
        sum.value[0] += part.value[0];
        sum.value[1] += part.value[1];
      }
  T* const to = target + table.head[rank] * places.head_stride + row * places.row_stride + column;
  write_two(to, sum.value[0], sum.value[1], write);
}

/// Into gradients of f32, as those of parameters are, or of bf16; those that are not wanted are left out. `partials`
/// says how the shares of each of the two lie; they begin at of_first and of_second.
inline void finish_partials_into(Step& step, const HeadTable& table, int heads, int depth, const Partials& partials,
                                 const PartialsPlaces& places, const float* of_first, const Target& first,
                                 const float* of_second = nullptr, const Target& second = {}) {
  if (!first && !second) return;
  const auto result = [](const float* shares, const Target& target) {
    return PartialsResult{shares, target.tensor.raw(), target.write};
  };
  const int count = first && second ? 2 : 1;
  PartialsResults results{};
  results.first = first ? result(of_first, first) : result(of_second, second);
  if (count == 2) results.second = result(of_second, second);
  const std::int64_t pairs = places.rows * depth / 2;
  const LaunchSize size{
      .blocks = {(pairs + kFinishThreads - 1) / kFinishThreads, places.head_stride == 0 ? 1 : heads, count},
      .threads = kFinishThreads};
  if ((first ? first : second).tensor.dtype() == DType::bf16)
    launch(step, size, finish_partials<bf16>, table, heads, depth, partials, places, results);
  else
    launch(step, size, finish_partials<float>, table, heads, depth, partials, places, results);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda
