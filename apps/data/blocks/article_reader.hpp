#pragma once
/// Blocks of articles ([key-value-predict 5.2]): B streams, each of which takes the next article of a list when it
/// has finished one. An article of m tokens a_1 .. a_m makes m positions: inputs `start`, a_1 .. a_{m-1}, targets
/// a_1 .. a_m. It may begin and end anywhere in a block; Block::preceding says where.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "apps/data/blocks/block_reader.hpp"
#include "apps/data/blocks/evaluation_plan.hpp"
#include "apps/data/data_set.hpp"
#include "apps/data/files/token_view.hpp"

namespace engram::data {

/// A split, in articles where the data know them. What it points to must outlive it.
struct ArticleSplit {
  TokenView tokens;
  std::span<const std::int64_t> starts = {};  ///< of articles, as DataSet::articles gives them; empty: none are known
  std::int32_t start = 0;  ///< the input before an article's first token: DataSet::article_start_token()

  ArticleSplit(TokenView all) : tokens(all) {}  // NOLINT: tokens are a split without articles
  ArticleSplit(TokenView all, std::span<const std::int64_t> begins, std::int32_t first)
      : tokens(all), starts(begins), start(first) {}
  /// Of "train", "valid" or "test"; throws UsageError for another name.
  ArticleSplit(const DataSet& data, std::string_view split)
      : ArticleSplit(data.split(split), data.articles(split), data.article_start_token()) {}

  std::int64_t articles() const { return std::ssize(starts); }
  /// Tokens of an article.
  std::int64_t length(std::int64_t article) const {
    return (article + 1 < articles() ? starts[static_cast<std::size_t>(article) + 1] : tokens.size()) -
           starts[static_cast<std::size_t>(article)];
  }
  /// The first tokens, at most so many, 0: all; and the articles that begin in them.
  ArticleSplit beginning(std::int64_t most) const {
    const TokenView first = tokens.beginning(most);
    const auto end = std::ranges::lower_bound(starts, first.size());
    return {first, starts.first(static_cast<std::size_t>(end - starts.begin())), start};
  }
};

/// In which order the articles of a pass are taken.
struct ArticleOrder {
  bool shuffled = false;  ///< by seed and epoch (shuffled_windows.hpp); else as they are in the split
  std::uint64_t seed = 0, epoch = 0;
};

/// One pass of B streams over the articles of a split, block by block. Of two streams that need an article at the same
/// position the one with the smaller number takes the earlier.
class ArticleStreams {
 public:
  /// Throws UsageError, `what` being the name of what is read, for B or M below 1, no article, starts that are not as
  /// article_starts.hpp says, and an article of more than 2^31 - 1 tokens.
  ArticleStreams(std::string_view what, const ArticleSplit& split, int rows, int block);

  void begin(const ArticleOrder& order);
  /// Goes on by so many positions without making a block.
  void skip(std::int64_t positions);
  /// Fills a block of `length` columns.
  void fill(int length, Block& block);

  const ArticleSplit& split() const { return split_; }
  /// Positions of a pass: those of the stream that has most to do.
  std::int64_t pass_length(const ArticleOrder& order) const;

 private:
  struct Stream {
    std::int64_t place = 0, end = 0;  // in the split: of the next target, and of the first one behind the article
    std::int64_t begin = 0;
  };
  /// Gives the stream the next article; false where none is left.
  bool take(Stream& stream);

  ArticleSplit split_;
  ArticleOrder order_;
  std::vector<Stream> streams_;
  std::int64_t taken_ = 0;  // articles
};

/// Training: endless epochs, each over all articles once, shuffled anew or, for validation, as they are in the split. A
/// block has M columns always; at the end of an epoch, where streams have nothing left, not all of it is scored.
class ArticleReader final : public BlockReader {
 public:
  /// B rows and blocks of M positions. Throws as ArticleStreams.
  ArticleReader(const ArticleSplit& split, int rows, int block, std::uint64_t seed, bool shuffled = true);

  /// Its zero_caches is set on the first block of every epoch.
  void next(Block& block) override;
  const ReaderState& state() const override { return state_; }
  bool accepts(const ReaderState& state) const override;
  void restore(const ReaderState& state) override;
  /// Nothing to say: every token is a target once an epoch.
  std::int64_t dropped() const override { return 0; }

  /// Streams that never get an article, as there are fewer than streams.
  int idle_streams() const;
  /// Blocks of the present epoch.
  std::int64_t epoch_blocks() const { return epoch_blocks_; }

 private:
  ArticleOrder order_of(const ReaderState& state) const { return {shuffled_, state.seed, state.wraps}; }
  std::int64_t blocks_in(const ReaderState& state) const;

  ArticleStreams streams_;
  bool shuffled_;
  ReaderState state_;  // position: blocks of the epoch that were handed out; wraps: epochs that are over
  std::int64_t epoch_blocks_ = 0;
};

/// Evaluation: one pass over all articles as they are in the split; every token is a target once. The last block may be
/// shorter.
class ArticleEvaluation final : public EvaluationPlan {
 public:
  /// Throws as ArticleStreams.
  ArticleEvaluation(const ArticleSplit& split, int block, int rows = 1);
  void begin() override;
  /// Its zero_caches is set on the first block.
  bool next(Block& block) override;
  std::int64_t block_count() const override { return (pass_length_ + block_ - 1) / block_; }
  std::int64_t scored_count() const override { return streams_.split().tokens.size(); }
  std::int64_t longest_block() const override { return std::min<std::int64_t>(block_, pass_length_); }

 private:
  ArticleStreams streams_;
  int block_;
  std::int64_t pass_length_, done_ = 0;
};

}  // namespace engram::data
