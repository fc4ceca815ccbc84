#pragma once
/// A vocabulary ordered by frequency, cut into clusters of decreasing width: frequent words have long vectors, rare
/// ones short ones. Grave et al.: "Efficient softmax approximation for GPUs" (2017); Baevski and Auli: "Adaptive input
/// representations for neural language modeling" (2019); [all-attention 4], and of
/// Transformer-XL, section 3.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/names.hpp"

namespace engram {

/// In which order the head's softmax has the slots of the tail clusters.
enum class ClusterOrder : std::uint8_t {
  natural,  ///< the first tail has the first slot
  reversed  ///< the first tail has the last slot, as in the released all-attention models
};
constexpr auto names_of(ClusterOrder) {
  return std::to_array<Named<ClusterOrder>>({{ClusterOrder::natural, "natural"}, {ClusterOrder::reversed, "reversed"}});
}

class VocabularyClusters {
 public:
  struct Cluster {
    std::int64_t first;  ///< id of its most frequent word, c_i
    std::int64_t size;   ///< n_i words, with the ids from first on
    std::int64_t width;  ///< E_i = floor(E / divisor^i), of its words' vectors
  };
  static constexpr std::int64_t kDivisor = 4;  ///< of the all-attention family

  /// Cut-offs c_1 < ... < c_K give clusters 0 .. K: the ids [c_i, c_(i+1)), with c_0 = 0 and c_(K+1) = `vocabulary`.
  /// `width`: E, of the most frequent words' vectors. `divisor`: what a cluster's vectors are shorter by than those of
  /// the one before it; 1: not at all. `order`: of head_slot(). Throws as check() does, and for no cut-off at all.
  VocabularyClusters(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary, std::int64_t width,
                     std::int64_t divisor = kDivisor, ClusterOrder order = ClusterOrder::reversed);

  /// Throws UsageError when the divisor is below 1, when a cut-off is below 1 or not above the one before it, when the
  /// last is not below `vocabulary`, or when a cluster would have width 0. It names the cut-off and the vocabulary, and
  /// cut-offs that do fit. With a vocabulary of 0, not known yet, the last cut-off may be anything.
  static void check(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary, std::int64_t width,
                    std::int64_t divisor = kDivisor);
  /// Cut-offs in the proportions of these ones, as far as they fit the vocabulary and the width, in round numbers. They
  /// may be fewer; empty: nothing fits.
  static std::vector<std::int64_t> fitting(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary,
                                           std::int64_t width, std::int64_t divisor = kDivisor);

  std::size_t count() const { return clusters_.size(); }      ///< K + 1
  std::size_t tails() const { return clusters_.size() - 1; }  ///< K
  const Cluster& operator[](std::size_t cluster) const { return clusters_[cluster]; }
  const Cluster& head() const { return clusters_.front(); }  ///< cluster 0
  std::int64_t vocabulary() const { return clusters_.back().first + clusters_.back().size; }

  /// The cluster of a word, which is in [0, vocabulary).
  std::size_t of(std::int64_t word) const;
  /// Numbers in a row of the head's softmax: the words of cluster 0, then a slot for each tail cluster.
  std::int64_t head_size() const { return head().size + static_cast<std::int64_t>(tails()); }
  /// Where the head has the slot of tail cluster 1 .. K, in the order that was asked for.
  std::int64_t head_slot(std::size_t tail) const {
    return head().size + static_cast<std::int64_t>(order_ == ClusterOrder::reversed ? tails() - tail : tail - 1);
  }

 private:
  std::vector<Cluster> clusters_;
  ClusterOrder order_;
};

}  // namespace engram
