#pragma once
/// Segments of an ordered corpus ([transformer-xl 4.4]): tokens are trimmed to B rows of T = floor(total / B), and a
/// pass goes through every row once from its first token, segment by segment; the last segment of a pass may be
/// shorter. Unlike the blocks of StreamReader every pass has the same borders, unless lengths are drawn.

#include <cstdint>
#include <string>

#include "apps/data/blocks/block_reader.hpp"
#include "apps/data/files/token_view.hpp"

namespace engram::data {

/// How rows are cut. One pass of one row: inputs 0 .. T - 2, targets 1 .. T - 1.
struct SegmentRule {
  int segment = 0;  ///< S, new tokens a block; at least 1
  /// Old tokens read again before the new ones, as context (ext_len of [transformer-xl 1.7]): min(extension, tokens
  /// read before). So the first block of a pass has none.
  int extension = 0;
  /// The length of every segment is drawn: clamp(int(N(base, 5)), 5, S + 15), base S with probability 0.95, else S / 2.
  bool drawn_lengths = false;
  /// Of every segment only positions i >= length / 2 are predicted from: half the tokens are never targets. Not with
  /// an extension.
  bool latest_half = false;
};

/// How training on half of the loss advances ([transformer-xl 6.5]). L is the length that the model sees.
///
///   overlap  L / 2 new tokens after an extension of L / 2: every token but the first of a row is a target once
///   skip     L new tokens, of which the latest half have targets
enum class HalfLoss : std::uint8_t { overlap, skip };
/// Throws UsageError for an L that is odd or below 2.
SegmentRule half_loss(int length, HalfLoss advance);

/// "segments", ", extension 64", ", lengths drawn", ", latest half": what ReaderState::rule holds besides S.
std::string text_of(const SegmentRule& rule);

/// S of segment number `counter` of a reader that draws lengths; a pure function of its arguments.
int drawn_length(int segment, std::uint64_t seed, std::uint64_t counter);

/// Fills a block of B rows: `length` new tokens from `position` on, after its extension. `row_length` is T.
/// `position` + `length` must be below T, and `context` (tokens without targets, the extension among them) below the
/// number of columns.
void fill_segment(TokenView tokens, const SegmentRule& rule, std::int64_t position, int length, int context, int rows,
                  std::int64_t row_length, Block& block);

/// Endless passes of segments. Row b of every block is stream b, so memory of a row is of the tokens before it.
class SegmentReader final : public BlockReader {
 public:
  /// The tokens must outlive the reader. `seed` is of drawn lengths. Throws UsageError for B or S below 1, a negative
  /// extension, one together with latest_half, and rows of fewer than two tokens (with latest_half: that have no
  /// target).
  SegmentReader(TokenView tokens, int rows, const SegmentRule& rule, std::uint64_t seed);

  /// Its zero_caches is set on the first block of every pass.
  void next(Block& block) override;
  const ReaderState& state() const override { return state_; }
  bool accepts(const ReaderState& state) const override;
  void restore(const ReaderState& state) override;
  std::int64_t dropped() const override { return state_.total - row_length_ * state_.rows; }

  std::int64_t row_length() const { return row_length_; }  ///< T
  /// The most columns that a block can have.
  int longest_block() const;

 private:
  /// Length and context of the segment at the reader's position; the length is 0 where the pass is over.
  struct Next {
    int length = 0, context = 0;
  };
  Next plan() const;

  TokenView tokens_;
  SegmentRule rule_;
  std::int64_t row_length_;
  ReaderState state_;  // blocks counts the drawn lengths too
};

}  // namespace engram::data
