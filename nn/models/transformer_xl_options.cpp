#include "nn/models/transformer_xl_options.hpp"

#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "nn/init.hpp"
#include "nn/layers/require_option.hpp"

namespace engram {
namespace {

bool is_absolute(PositionKind kind) {
  return kind == PositionKind::absolute_sinusoidal || kind == PositionKind::absolute_learned;
}

void check_clusters(const TransformerXlOptions& options) {
  require_option(options.embedding_width >= 0, "embedding_width", "at least 0", options.embedding_width);
  require_option(options.divisor >= 1, "divisor", "at least 1", options.divisor);
  std::int64_t width = options.token_width();
  for (std::size_t cluster = 0; cluster < options.cutoffs.size(); ++cluster) {
    width /= options.divisor;
    require_option(width >= 1, "divisor",
                   text("small enough for ", options.cutoffs.size(), " cutoffs and vectors of ", options.token_width()),
                   options.divisor);
  }
  VocabularyClusters::check(options.cutoffs, options.vocabulary, options.token_width(), options.divisor);
  for (const std::int64_t cluster : options.untied_projections)
    require_option(cluster >= 0 && cluster <= static_cast<std::int64_t>(options.cutoffs.size()), "untied_projections",
                   text("from 0 to ", options.cutoffs.size()), cluster);
}

}  // namespace

void TransformerXlOptions::check() const {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int32_t>::max() / 4;
  require_option(vocabulary >= 1, "vocabulary", "at least 1", vocabulary);
  require_option(layers >= 1, "layers", "at least 1", layers);
  require_option(width >= 1, "width", "at least 1", width);
  require_option(heads >= 1, "heads", "at least 1", heads);
  require_option(depth >= 0, "depth", "at least 0", depth);
  require_option(depth > 0 || width % heads == 0, "heads", text("a divisor of width ", width, " where depth is 0"),
                 heads);
  require_option(inner >= 1, "inner", "at least 1", inner);
  const bool sinusoids = positions == PositionKind::relative || positions == PositionKind::absolute_sinusoidal;
  require_option(!sinusoids || width % 2 == 0, "width", text("even for positions ", name_of(positions)), width);
  require_option(positions != PositionKind::absolute_learned || heads * head_depth() == width, "depth",
                 text("width / heads for positions ", name_of(positions)), head_depth());
  const bool tables = positions == PositionKind::shaw || positions == PositionKind::absolute_learned;
  require_option(tables ? position_rows >= 1 && position_rows <= kLongest : position_rows == 0, "position_rows",
                 tables ? text("from 1 to ", kLongest, " for positions ", name_of(positions))
                        : text("0 for positions ", name_of(positions)),
                 position_rows);
  require_option(memory >= 0 && memory <= kLongest, "memory", text("from 0 to ", kLongest), memory);
  require_option(memory == 0 || !is_absolute(positions), "memory",
                 text("0 for positions ", name_of(positions), ", which would be added to remembered states again"),
                 memory);
  require_option(memory > 0 || visibility == Visibility::all, "memory",
                 text("at least 1 for visibility ", name_of(visibility)), memory);
  require_option(clamp <= kLongest, "clamp", text("at most ", kLongest), clamp);
  check_clusters(*this);
  require_option(dropout >= 0 && dropout < 1, "dropout", "in [0, 1)", dropout);
  require_option(attention_dropout >= 0 && attention_dropout < 1, "attention_dropout", "in [0, 1)", attention_dropout);
  require_option(word_dropout >= 0 && word_dropout < 1, "word_dropout", "in [0, 1)", word_dropout);
  require_option(norm_epsilon > 0, "norm_epsilon", "above 0", norm_epsilon);
  require_option(init_deviation >= 0, "init_deviation", "at least 0", init_deviation);
  require_option(init_range >= 0 && std::isfinite(init_range), "init_range", "at least 0 and finite", init_range);
  require_option(embedding_init_range >= 0 && std::isfinite(embedding_init_range), "embedding_init_range",
                 "at least 0 and finite", embedding_init_range);
  require_option(projection_init_deviation >= 0, "projection_init_deviation", "at least 0", projection_init_deviation);
  require_option(norm_init_deviation >= 0, "norm_init_deviation", "at least 0", norm_init_deviation);
  require_option(attention_memory >= 0 && attention_memory <= std::int64_t{1} << 40, "attention_memory",
                 "from 0 to 2^40", attention_memory);
  memories.check(width, layers);
}

Initializer TransformerXlOptions::weight_start() const {
  return init == WeightStart::normal ? init::normal(init_deviation) : init::uniform(init_range);
}

Initializer TransformerXlOptions::table_start() const {
  if (embedding_init == EmbeddingStart::as_weights) return weight_start();
  return embedding_init == EmbeddingStart::normal ? init::normal(init_deviation) : init::uniform(embedding_init_range);
}

std::string_view name_of(PositionKind kind) {
  switch (kind) {
    case PositionKind::shaw:
      return "shaw";
    case PositionKind::absolute_sinusoidal:
      return "absolute_sinusoidal";
    case PositionKind::absolute_learned:
      return "absolute_learned";
    default:
      return "relative";
  }
}
std::string_view name_of(ShawTerms terms) { return terms == ShawTerms::ab ? "ab" : "abcd"; }
std::string_view name_of(Visibility visibility) {
  return visibility == Visibility::all           ? "all"
         : visibility == Visibility::last_memory ? "last_memory"
                                                 : "last_memory_plus_1";
}
std::string_view name_of(MemoryStart start) { return start == MemoryStart::empty ? "empty" : "zeros"; }
std::string_view name_of(WeightStart start) { return start == WeightStart::normal ? "normal" : "uniform"; }
std::string_view name_of(EmbeddingStart start) {
  return start == EmbeddingStart::as_weights ? "as_weights" : start == EmbeddingStart::normal ? "normal" : "uniform";
}
std::string_view name_of(ClusterOrder order) { return order == ClusterOrder::natural ? "natural" : "reversed"; }

}  // namespace engram
