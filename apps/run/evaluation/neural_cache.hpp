#pragma once
/// A cache of what a text has said so far, mixed into a trained model's probabilities (Grave, Joulin and Usunier:
/// "Improving Neural Language Models with a Continuous Cache", 2017; [key-value-predict 5.4]).
///
/// Of the last n positions i of a text the cache holds u_i, the vector that entered the softmax, and the word that came
/// next. At position t
///
///   p_cache(v) = sum over i with next word v of exp(theta u_t . u_i) / sum over all i of exp(theta u_t . u_i)
///   p(v) = (1 - lambda) p_model(v) + lambda p_cache(v); p_model(v) where the cache is empty

#include <cstdint>
#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "apps/data/blocks/block_reader.hpp"

namespace engram {

struct NeuralCacheOptions {
  std::int64_t positions = 0;  ///< n; 0: no cache
  double theta = 1;            ///< from 0 to 1e9
  double lambda = 0.1;         ///< in [0, 1)
  /// Throws UsageError, naming the `command`, for values out of range.
  void check(std::string_view command) const;
};

/// Of one stream.
class NeuralCache {
 public:
  NeuralCache(const NeuralCacheOptions& options, std::int64_t width);

  /// The start of a text.
  void reset() { size_ = next_ = 0; }
  /// -ln p of the word after a position whose vector is `vector` [width], where the model says `nll`, in nats. With
  /// lambda = 0 that is `nll` to the bit. Two passes over the cache, n width products; no probability of another word.
  double loss(std::span<const double> vector, std::int32_t word, double nll);
  /// Takes the position in, in place of the oldest one if there are n.
  void push(std::span<const double> vector, std::int32_t word);

 private:
  double theta_, lambda_;
  std::size_t most_, width_;
  std::size_t size_ = 0, next_ = 0;  // positions; where the next one goes
  std::vector<double> vectors_;      // [positions, width], grows to n
  std::vector<std::int32_t> words_;  // [positions]
  std::vector<double> weights_;      // [positions], of loss()
};

/// Of all streams of an evaluation plan whose rows stay the same.
class StreamCaches {
 public:
  explicit StreamCaches(const NeuralCacheOptions& options) : options_(options) {}

  /// Replaces the losses of the scored targets of a block, or of some of its rows (data::copy_rows), in nats. vectors:
  /// [B M', width], of the positions that have targets, as losses are. A stream's cache is reset where an article
  /// begins or the plan resets its pasts; positions that are not scored do not enter it. Throws Error when blocks
  /// differ in rows, or in the rows of their parts.
  void apply(const data::Block& block, std::span<const double> vectors, std::span<double> losses);

 private:
  NeuralCacheOptions options_;
  std::map<int, std::vector<NeuralCache>> streams_;  // by the first row of their part
};

}  // namespace engram
