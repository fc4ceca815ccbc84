#include "apps/studies/context/position_losses.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "apps/run/evaluation/split_evaluation.hpp"
#include "core/error.hpp"
#include "core/philox.hpp"

namespace engram {
namespace {

/// The tokens before each position as a row of its own, read from nothing, with the position's token as the only
/// target. Blocks have no place in the split: found tokens come in the order of the positions.
class PositionBlocks final : public data::EvaluationPlan {
 public:
  PositionBlocks(data::TokenView tokens, const std::vector<std::int64_t>& positions, std::int64_t length,
                 std::int64_t rows)
      : tokens_(tokens), positions_(&positions), length_(length), rows_(rows) {}

  void begin() override { done_ = 0; }
  bool next(data::Block& block) override {
    const std::int64_t rows = std::min(rows_, scored_count() - done_);
    if (rows <= 0) return false;
    block = {.rows = static_cast<int>(rows),
             .length = static_cast<int>(length_),
             .context = static_cast<int>(length_ - 1),
             .inputs = std::vector<std::int32_t>(static_cast<std::size_t>(rows * length_)),
             .targets = {},
             .scored = std::vector<std::uint8_t>(static_cast<std::size_t>(rows), 1),
             .scored_count = rows,
             .zero_caches = true};
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t position = (*positions_)[static_cast<std::size_t>(done_ + row)];
      tokens_.copy(position - length_, length_, block.inputs.data() + row * length_);
      block.targets.push_back(tokens_[position]);
    }
    done_ += rows;
    return true;
  }
  std::int64_t block_count() const override { return (scored_count() + rows_ - 1) / rows_; }
  std::int64_t scored_count() const override { return static_cast<std::int64_t>(positions_->size()); }
  std::int64_t longest_block() const override { return length_; }

 private:
  data::TokenView tokens_;
  const std::vector<std::int64_t>* positions_;
  std::int64_t length_, rows_;
  std::int64_t done_ = 0;  // positions
};

// Of each family: whether positions are counted from the beginning of a block, so that only those of training are
// known.
bool counts_from_start(const AllAttentionOptions&) { return false; }
bool counts_from_start(const TransformerXlOptions& options) {
  return options.positions == PositionKind::absolute_sinusoidal || options.positions == PositionKind::absolute_learned;
}
bool counts_from_start(const ProductKeyTransformerOptions&) { return true; }
bool counts_from_start(const RecurrentOptions&) { return false; }

}  // namespace

std::vector<std::int64_t> draw_positions(data::TokenView tokens, std::int64_t count, std::int64_t before,
                                         std::uint64_t seed) {
  const std::int64_t choices = tokens.size() - before;
  if (count < 1 || choices < count)
    throw UsageError(text("recl: --positions must be from 1 to the number of tokens that have ", before,
                          " before them, ", std::max<std::int64_t>(0, choices), " of ", tokens.size(), ", got ", count,
                          "\n  take fewer positions, a lower --longest or another split"));
  // Keeps these numbers apart from others that are drawn with the same seed: "RECL".
  constexpr std::uint32_t kPositions = 0x5245434C;
  const auto low = [](std::uint64_t number) { return static_cast<std::uint32_t>(number); };
  // The positions with the smallest numbers of their own.
  std::vector<std::pair<std::uint64_t, std::int64_t>> drawn;
  for (std::int64_t position = before; position < tokens.size(); ++position) {
    const auto counter = static_cast<std::uint64_t>(position);
    const PhiloxBlock words = philox({{low(counter), low(counter >> 32), 0, kPositions}}, low(seed), low(seed >> 32));
    drawn.emplace_back(std::uint64_t{words.word[1]} << 32 | words.word[0], position);
  }
  std::ranges::nth_element(drawn, drawn.begin() + (count - 1));
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < count; ++i) positions.push_back(drawn[static_cast<std::size_t>(i)].second);
  std::ranges::sort(positions);
  return positions;
}

PositionReader::PositionReader(const StudiedRun& run, data::TokenView tokens, std::vector<std::int64_t> positions,
                               std::optional<std::int64_t> clamp, Runtime& runtime, DType dtype)
    : run_(run),
      tokens_(tokens),
      positions_(std::move(positions)),
      clamp_(clamp),
      trained_(run.checkpoint, CheckpointKind::newest, runtime, dtype) {}

std::optional<std::int64_t> PositionReader::longest(const StudiedRun& run) {
  const bool is_absolute = with_own_options(run.config.model, [](const auto& own) { return counts_from_start(own); });
  return is_absolute ? std::optional(run.training_length()) : std::nullopt;
}

std::vector<double> PositionReader::exact(std::int64_t length) {
  const std::int64_t read = std::min(length, longest(run_).value_or(length));
  if (run_.config.model.family == ModelFamily::transformer_xl) {
    TransformerXlModel& model = transformer_xl_of(trained_);
    model.set_context({.clamp = clamp_.value_or(run_.config.model.transformer_xl.clamp)});
  }
  constexpr std::int64_t kTokens = 8192;  // of a block
  // The caches of an all-attention model are as long as its spans, whatever is read.
  const bool has_spans = run_.config.model.family == ModelFamily::all_attention;
  const std::int64_t row = has_spans ? std::max(read, run_.config.model.all_attention.max_span) : read;
  WatchedPlan plan(
      std::make_unique<PositionBlocks>(tokens_, positions_, read, std::max<std::int64_t>(1, kTokens / row)), watch_);
  FrozenPasts pasts(trained_.placed(), read);
  std::vector<double> losses;
  evaluate(trained_.placed(), plan, std::ref(pasts),
           {.found = [&losses](std::int64_t, double nll) { losses.push_back(nll); }});
  return losses;
}

std::vector<double> PositionReader::windowed(std::int64_t length) {
  if (!run_.remembers()) return exact(length);
  const TransformerXlOptions& options = run_.config.model.transformer_xl;
  transformer_xl_of(trained_).set_context({.memory = length,
                                           .visibility = Visibility::last_memory,
                                           .start = options.memory_start,
                                           .clamp = clamp_.value_or(options.clamp)});
  std::vector<double> losses(positions_.size());
  const auto keep = [&](std::int64_t token, double nll) {
    const auto found = std::ranges::lower_bound(positions_, token);
    if (found != positions_.end() && *found == token)
      losses[static_cast<std::size_t>(found - positions_.begin())] = nll;
  };
  evaluate_split(trained_, tokens_, {.exact = true, .watch = watch_}, {.found = keep});
  return losses;
}

}  // namespace engram
