#pragma once
/// A block of tokens, what training takes blocks from, and the reader of streams. Its tokens are trimmed to B*T, T =
/// floor(total / B), and laid out as B contiguous rows, which the caches of the model run along; rows are never
/// shuffled. A block is [B, M] inputs at `position` and the same one token later as targets. When the position reaches
/// T - M the reader wraps: it goes on from a random position in [0, M), which moves the block borders from pass to
/// pass, with all caches zeroed.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/files/token_view.hpp"

namespace engram::data {

/// What a model sees in one step. Vectors are row by row and keep their memory between blocks. The first `context`
/// columns of every row are read and not predicted from, so that losses are of the last length - context columns alone:
/// `inputs` is [rows, length], `targets` and `scored` are [rows, length - context], whose column i belongs to input
/// column context + i. Without context all three are [rows, length]; only readers of segments (segments.hpp) and of
/// sliding windows (segment_evaluation.hpp) make any.
struct Block {
  int rows = 0;
  int length = 0;
  /// Leading columns without targets, from 0 to length - 1.
  int context = 0;
  /// Last columns of every row that the next block of the pass has again as its first ones. Memory must end before
  /// them ([transformer-xl 1.7]), or the model sees them twice; 0 if the next block begins after this one.
  int fed_again = 0;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> targets;
  std::vector<std::uint8_t> scored;  ///< 1 where the target counts in the loss, 0 where it is context or padding
  std::int64_t scored_count = 0;
  bool zero_caches = false;  ///< a pass starts: caches must be zero vectors, or empty, before this block
  /// Where it is in the split: input m of row b is token first + b * stride + m, and the target for it, if it has one,
  /// the next one. Blocks of articles (article_reader.hpp) have `places` instead, and 0 here.
  std::int64_t first = 0, stride = 0;
  /// Of blocks of articles, [rows, length]: how many positions of its article are before this one, whatever block they
  /// were in. 0 says that the article begins here: nothing before it may be remembered. Where a stream has nothing left
  /// inputs, targets and this are 0, and the target is not scored. Empty: the data know no articles.
  std::vector<std::int32_t> preceding;
  /// Which row of a larger block the first one is, where this is a part of one (copy_rows()).
  int first_row = 0;
  /// Of blocks of articles, [rows, length - context]: where in the split the target is, as its row is no contiguous run
  /// of tokens; -1 for none. Empty: `first` and `stride` say it.
  std::vector<std::int64_t> places;

  /// Where in the split target `i` of `targets` is.
  std::int64_t place_of(std::int64_t i) const {
    if (!places.empty()) return places[static_cast<std::size_t>(i)];
    const std::int64_t columns = length - context;
    return first + i / columns * stride + context + i % columns + 1;
  }
  /// Makes it a block of no articles.
  void clear_articles() {
    preceding.clear();
    places.clear();
  }
};

/// The largest B for which every row holds a block and one more token: floor(total / (M + 1)), 0 if none does.
std::int64_t largest_rows(std::int64_t total, std::int64_t block);

/// Everything that next() depends on besides the tokens: with it and the same tokens the blocks that follow are
/// bit-identical.
struct ReaderState {
  std::int64_t total = 0;     ///< tokens before trimming
  int rows = 0;               ///< B
  int block = 0;              ///< M
  std::int64_t position = 0;  ///< of the next block, before a wrap that it may need
  std::uint64_t wraps = 0;    ///< so far; the counter of the random generator
  std::uint64_t blocks = 0;   ///< handed out so far
  std::uint64_t seed = 0;
  std::string rule{};  ///< how segments are cut; empty: the blocks of StreamReader
  friend bool operator==(const ReaderState&, const ReaderState&) = default;
};
void to_json(nlohmann::json& json, const ReaderState& state);
/// Throws UsageError naming a member that is missing or no integer.
void from_json(const nlohmann::json& json, ReaderState& state);

/// An endless source of the blocks that training takes.
class BlockReader {
 public:
  virtual ~BlockReader() = default;
  virtual void next(Block& block) = 0;
  virtual const ReaderState& state() const = 0;
  /// Whether restore() would take the state: one of a reader that cuts as many tokens in the same way.
  virtual bool accepts(const ReaderState& state) const = 0;
  /// Continues where the state was saved. Throws UsageError unless accepts(state).
  virtual void restore(const ReaderState& state) = 0;
  /// Tokens that no row holds.
  virtual std::int64_t dropped() const = 0;
};

class StreamReader final : public BlockReader {
 public:
  /// B rows and blocks of M tokens. The tokens must outlive the reader. Throws UsageError for B or M below 1, and for
  /// fewer than B*(M+1) tokens.
  StreamReader(TokenView tokens, int rows, int block, std::uint64_t seed);

  /// Fills the next block, wrapping first if needed. Its zero_caches is set on the very first block and after a wrap.
  void next(Block& block) override;

  const ReaderState& state() const override { return state_; }
  /// A state of a StreamReader with the same B and M over as many tokens.
  bool accepts(const ReaderState& state) const override;
  void restore(const ReaderState& state) override;

  std::int64_t row_length() const { return row_length_; }  ///< T
  std::int64_t dropped() const override { return state_.total - row_length_ * state_.rows; }

 private:
  TokenView tokens_;
  std::int64_t row_length_;
  ReaderState state_;
};

/// Copies inputs and targets of rows [first + b * stride, ... + length) to the block, all of them scored.
void fill_block(TokenView tokens, std::int64_t first, std::int64_t stride, int rows, int length, Block& block);

/// Makes `part` a block of the rows [begin, end) of `whole`: what a model sees of these streams. Its scored_count is
/// theirs.
void copy_rows(const Block& whole, std::int64_t begin, std::int64_t end, Block& part);

/// Throws the UsageError of BlockReader::restore: `own` is the reader's state, `saved` the one that it does not accept.
[[noreturn]] void refuse_state(const ReaderState& own, const ReaderState& saved);

/// What a user calls the numbers of a reader, for messages.
struct RowNames {
  std::string_view batch = "training.batch", block = "training.block";
};
/// Throws the UsageErrors of StreamReader's constructor, `what` being the name of what is read, `advice` what else may
/// be done.
void check_rows(std::string_view what, std::int64_t total, int rows, int block, const RowNames& names,
                std::string_view advice);

}  // namespace engram::data
