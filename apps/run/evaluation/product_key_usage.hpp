#pragma once
/// How evenly a product-key memory uses its slots, over a text. [product-key 4.1].

#include <cstdint>
#include <span>
#include <vector>

namespace engram {

/// What was read of one memory. Weights are summed in double, reads are counted.
class ProductKeyUsage {
 public:
  static constexpr std::int64_t kMostHeads = 64;

  /// Heads: at most kMostHeads.
  ProductKeyUsage(std::int64_t slots, std::int64_t heads, std::int64_t selected);

  /// Adds the reads of some positions: [positions, heads, selected] slots, best first, and their softmax weights.
  void add(std::span<const std::int64_t> ids, std::span<const double> weights);
  /// Adds what another one saw of the same memory: metrics of the parts of a text joined are those of the text.
  void merge(const ProductKeyUsage& other);

  struct Metrics {
    std::int64_t slots = 0, positions = 0;
    std::int64_t untouched = 0;  ///< slots that were never read
    double usage = 0;            ///< share of slots that were read at all
    double usage_by_weight = 0;  ///< share whose weights add up to more than 0
    double kl = 0;               ///< ln N + sum z ln z of the shares z of the weights: nats, 0 when all are used alike
    double kl_by_count = 0;      ///< the same of the shares of the reads
    double top_usage = 0;        ///< share of slots that were ever read first: Kim, Jung (2020)
    double gini = 0;             ///< of the weights: 0 when all are used alike, towards 1 when few are
    std::int64_t half_mass = 0, most_mass = 0, nearly_all_mass = 0;  ///< fewest slots with 50, 90, 99% of the weights
    double score_entropy = 0;   ///< of the weights of a head at a position, mean, nats; ln(selected) when alike
    double top_weight = 0;      ///< weight of the best slot of a head at a position, mean
    double head_overlap = 0;    ///< share of the slots that were read which more than one head has read
    double repeated_reads = 0;  ///< share of reads whose slot another head reads at the same position
    double total_weight = 0;    ///< positions times heads, but for rounding
  };
  /// Throws Error before anything was added.
  Metrics metrics() const;

  bool was_read(std::int64_t slot) const { return reads_[static_cast<std::size_t>(slot)] > 0; }
  /// Shares of the weights of the slots, largest first, none of 0.
  std::vector<double> falling_shares() const;

 private:
  std::int64_t heads_, selected_;
  std::vector<double> weights_;          // z', of every slot
  std::vector<std::int64_t> reads_;      // of every slot
  std::vector<bool> first_;              // whether it was ever the best
  std::vector<std::uint64_t> by_heads_;  // bit h: head h has read it
  std::int64_t positions_ = 0, repeated_ = 0;
  double entropy_ = 0, top_weight_ = 0;  // sums over positions and heads
};

}  // namespace engram
