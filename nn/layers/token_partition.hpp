#pragma once
/// The tokens of a block sorted into the clusters of their vocabulary, on the host: which rows of the block a cluster's
/// kernels work on is known before the step, so that nothing is read from the device inside it. All lists lie one after
/// the other in one array, which is copied to the device together with the block.

#include <cstdint>
#include <span>
#include <vector>

#include "nn/layers/vocabulary_clusters.hpp"

namespace engram {

class TokenPartition {
 public:
  /// A part of values().
  struct List {
    std::int64_t begin = 0, size = 0;
  };
  struct Cluster {
    List inputs;              ///< the inputs in this cluster: ids counted from the cluster's first word
    List rows;                ///< tail clusters: the scored rows whose target is in it, ascending; padding: row 0
    List targets;             ///< tail clusters: these targets, counted from the cluster's first word; padding: 0
    List counted;             ///< tail clusters: 1 for each row, 0 for padding
    std::int64_t scored = 0;  ///< tail clusters: rows without padding
  };

  /// Tokens are in [0, vocabulary). `targets` has as many as `inputs`, or none at all, or fewer: those of the rows that
  /// are scored, which are then counted on their own, as the rows of the hidden states that losses are asked for. With
  /// `padded`, a cluster's lists are made longer up to padded_count(): a step of a device that repeats steps by itself
  /// stays valid while the counts vary a little. Keeps its memory from call to call. Throws Error for more targets than
  /// inputs.
  void assign(const VocabularyClusters& clusters, std::span<const std::int32_t> inputs,
              std::span<const std::int32_t> targets, bool padded);

  std::size_t count() const { return clusters_.size(); }
  const Cluster& operator[](std::size_t cluster) const { return clusters_[cluster]; }
  /// [R] of all rows: where an input's vector is when those of all clusters (padding included) stand in a row.
  List places() const { return places_; }
  /// [R'] of the scored rows: the target's place in the head's softmax, a word's own or its cluster's slot. Empty
  /// without targets.
  List head_targets() const { return head_targets_; }

  std::span<const std::int32_t> values() const { return values_; }
  std::span<const std::int32_t> list(List part) const {
    return std::span(values_).subspan(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.size));
  }
  /// Appends the lengths of all lists: two blocks with the same lengths are the same kernels over the same memory.
  void append_counts(std::vector<std::int64_t>& counts) const;

  /// The next multiple of a quarter of the count's power of two, at least of 64: at most a quarter more, and seldom
  /// another number from block to block.
  static std::int64_t padded_count(std::int64_t count);
  /// No block of so many rows has more values().
  static std::int64_t most_values(const VocabularyClusters& clusters, std::int64_t rows);

 private:
  List append(std::int64_t count);

  std::vector<std::int32_t> values_;
  std::vector<Cluster> clusters_;
  std::vector<std::int64_t> used_;  // while lists are filled, of every cluster
  List places_, head_targets_;
};

}  // namespace engram
