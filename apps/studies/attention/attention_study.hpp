#pragma once
/// Where the heads of a trained model look while they read a text: the weights themselves, not an estimate.
/// [all-attention 9].

#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/placed_model.hpp"
#include "nn/models/all_attention.hpp"

namespace engram {

/// What one head attends to. A head that sees the context and persistent slots in one softmax has both; where slots
/// have a softmax of their own they are heads of their own.
struct HeadAttention {
  std::int64_t layer = 0;
  std::int64_t head = 0;  ///< within its kind
  bool sees_context = false, sees_slots = false;
  /// Means over all queries.
  double slot_share = 0;          ///< of the weight on persistent slots, in [0, 1]
  double padding_share = 0;       ///< of the weight on zero vectors before the start of the text
  double entropy = 0;             ///< bits
  double distance = 0;            ///< positions, of the weight on the context, over the queries that have any; else 0
  std::int64_t with_context = 0;  ///< queries that have any
};

/// The weights of one query; they sum to 1.
struct AttentionRow {
  std::int64_t position = 0;    ///< of the query in the text
  std::vector<double> context;  ///< by distance: [0] is one position back
  std::vector<double> slots;
};

/// A token that made a head look at a slot.
struct SlotHit {
  std::int64_t position = 0;
  double weight = 0;
};
struct SlotUse {
  std::int64_t slot = 0;
  double share = 0;           ///< of the weight of all queries
  std::vector<SlotHit> hits;  ///< the largest weights, largest first
};

/// Which head is looked at closely.
struct StudiedHead {
  std::int64_t layer = 0, head = 0;
  bool of_slots = false;  ///< of the heads that see slots only
  std::int64_t rows = 0;  ///< queries whose weights are kept: the last ones
  int hits = 5;           ///< tokens kept for each slot
};

class AttentionStudy {
 public:
  /// Throws UsageError for a head that the model does not have.
  AttentionStudy(const Placed<AllAttentionModel>& placed, const StudiedHead& studied);

  /// Has `found` called with the weights of every query of every head that is read from now on: block by block, in it
  /// layer by layer, in that head by head, queries in their order. Of the head its place and what it sees are known.
  using RowFound = std::function<void(const HeadAttention& head, const AttentionRow& row)>;
  void on_rows(RowFound found) { row_found_ = std::move(found); }

  /// Reads a text from the start of a stream, in blocks of at most `block` tokens.
  void read(const std::vector<std::int32_t>& tokens, std::int64_t block, const EvaluationWatch& watch = {});

  /// Every head, by layer: first those that see the context, then those that only see slots.
  std::vector<HeadAttention> heads() const;
  /// The last queries of the studied head, in their order.
  const std::deque<AttentionRow>& rows() const { return rows_; }
  /// The slots that the studied head uses most.
  std::vector<SlotUse> slots(std::size_t most) const;

 private:
  struct Call {
    Tensor kept;
    const AttentionOptions* options;  // nullptr: slots only
    Tensor span;
    std::int64_t heads, slots, queries;
  };

  void take(const ModelTrace& trace, std::int64_t first, std::int64_t queries);
  void take_call(const Call& call, std::size_t first_head, std::int64_t first);
  void take_row(HeadAttention& head, bool is_studied, AttentionRow row);
  bool is_studied(const HeadAttention& head) const;
  std::int64_t slot_heads() const;

  Placed<AllAttentionModel> placed_;
  StudiedHead studied_;
  std::vector<HeadAttention> heads_;  // sums over the queries
  std::int64_t queries_ = 0;
  std::deque<AttentionRow> rows_;
  std::vector<SlotUse> slots_;  // of the studied head, sums over the queries
  RowFound row_found_;
};

}  // namespace engram
