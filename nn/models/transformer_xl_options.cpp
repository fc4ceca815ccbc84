#include "nn/models/transformer_xl_options.hpp"

#include "core/error.hpp"
#include "nn/init.hpp"
#include "nn/option_limits.hpp"
#include "nn/option_rules.hpp"

namespace engram {
namespace {

bool is_absolute(PositionKind kind) {
  return kind == PositionKind::absolute_sinusoidal || kind == PositionKind::absolute_learned;
}

void check_clusters(const TransformerXlOptions& options) {
  constexpr OptionRules rules("model: ");
  rules.within("embedding_width", options.embedding_width, 0, option_limits::kWidth);
  rules.within("divisor", options.divisor, 1, option_limits::kWidth);
  std::int64_t width = options.token_width();
  for (std::size_t cluster = 0; cluster < options.cutoffs.size(); ++cluster) {
    width /= options.divisor;
    rules.require(width >= 1, "divisor",
                  text("small enough for ", options.cutoffs.size(), " cutoffs and vectors of ", options.token_width()),
                  options.divisor);
  }
  VocabularyClusters::check(options.cutoffs, options.vocabulary, options.token_width(), options.divisor);
  for (const std::int64_t cluster : options.untied_projections)
    rules.require(cluster >= 0 && cluster <= static_cast<std::int64_t>(options.cutoffs.size()), "untied_projections",
                  text("from 0 to ", options.cutoffs.size()), cluster);
}

}  // namespace

void TransformerXlOptions::check() const {
  using namespace option_limits;
  constexpr OptionRules rules("model: ");
  rules.within("vocabulary", vocabulary, 1, kRows);
  rules.within("layers", layers, 1, kLayers);
  rules.within("width", width, 1, kWidth);
  rules.within("heads", heads, 1, kHeads);
  rules.within("depth", depth, 0, kWidth / heads, ", the bound of all heads together");
  rules.require(depth > 0 || width % heads == 0, "heads", text("a divisor of width ", width, " where depth is 0"),
                heads);
  rules.within("inner", inner, 1, kRows);
  const bool sinusoids = positions == PositionKind::relative || positions == PositionKind::absolute_sinusoidal;
  rules.require(!sinusoids || width % 2 == 0, "width", text("even for positions ", name_of(positions)), width);
  rules.require(positions != PositionKind::absolute_learned || heads * head_depth() == width, "depth",
                text("width / heads for positions ", name_of(positions)), head_depth());
  const bool tables = positions == PositionKind::shaw || positions == PositionKind::absolute_learned;
  rules.require(tables ? position_rows >= 1 && position_rows <= kPositions : position_rows == 0, "position_rows",
                tables ? text("from 1 to ", kPositions, " for positions ", name_of(positions),
                              positions == PositionKind::shaw ? ", a row for each distance that is told apart"
                                                              : ", the tokens of the longest block at least")
                       : text("0 for positions ", name_of(positions)),
                position_rows);
  rules.require(second_target >= 0 && second_target <= 1, "second_target", "in [0, 1]", second_target);
  if (!cutoffs.empty() && (intermediate_losses || second_target > 0))
    throw UsageError(text("model: cutoffs must be empty with ",
                          intermediate_losses ? "intermediate_losses" : "second_target", ", got ", cutoffs.size(),
                          "\n  these losses have a softmax over the whole vocabulary"));
  rules.within("memory", memory, 0, kPositions);
  rules.require(memory == 0 || !is_absolute(positions), "memory",
                text("0 for positions ", name_of(positions), ", which would be added to remembered states again"),
                memory);
  rules.require(memory > 0 || visibility == Visibility::all, "memory",
                text("at least 1 for visibility ", name_of(visibility)), memory);
  // The released programs write -1 for none.
  rules.within("clamp", clamp, -1, kPositions, ", 0 or -1 for none");
  check_clusters(*this);
  rules.dropout("dropout", dropout);
  rules.dropout("attention_dropout", attention_dropout);
  rules.dropout("word_dropout", word_dropout);
  rules.within("norm_epsilon", norm_epsilon, kSmallest, kLargest);
  rules.within("init_deviation", init_deviation, 0, kLargestStart);
  rules.within("init_range", init_range, 0, kLargestStart);
  rules.within("embedding_init_range", embedding_init_range, 0, kLargestStart);
  rules.within("projection_init_deviation", projection_init_deviation, 0, kLargestStart);
  rules.within("norm_init_deviation", norm_init_deviation, 0, kLargestStart);
  rules.require(attention_memory >= 0 && attention_memory <= kMebibytes, "attention_memory", "from 0 to 2^40",
                attention_memory);
  memories.check(width, layers);
}

Initializer TransformerXlOptions::weight_start() const {
  return init == WeightStart::normal ? init::normal(init_deviation) : init::uniform(init_range);
}

Initializer TransformerXlOptions::table_start() const {
  if (embedding_init == EmbeddingStart::as_weights) return weight_start();
  return embedding_init == EmbeddingStart::normal ? init::normal(init_deviation) : init::uniform(embedding_init_range);
}

}  // namespace engram
