#include "apps/run/cost/solved_width.hpp"

#include "core/error.hpp"
#include "nn/models/recurrent.hpp"

namespace engram {
namespace {

/// The options of this width, with vectors as long as before.
RecurrentOptions of_width(RecurrentOptions model, std::int64_t width) {
  model.embedding_width = model.vector_width();
  model.width = width;
  return model;
}

/// Of state_parts(): the narrowest width that the model can have. The vectors of its last cluster have one number then.
std::int64_t least_multiple(const RecurrentOptions& model) {
  if (model.output_width > 0) return 1;
  std::int64_t numbers = 1;
  for (std::size_t cluster = 0; cluster < model.cutoffs.size(); ++cluster) numbers *= model.divisor;
  return numbers;
}

}  // namespace

std::int64_t parameters_without_embedding(const RecurrentOptions& model) {
  RecurrentModel counted(model);
  ParameterStore store;
  collect(counted, store);
  ParameterStore input;
  collect(counted.tokens().input(), input);
  return store.count() - input.count();
}

SolvedWidth solve_width(const RecurrentOptions& model, std::int64_t target) {
  if (model.tie_tables)
    throw UsageError(
        "count: --solve must be asked of a model whose output has tables of its own, got model.tie_tables = true\n  "
        "the width of tied tables follows from model.embedding_width");
  if (target == 0) {
    RecurrentOptions lstm{.vocabulary = model.vocabulary,
                          .embedding_width = model.vector_width(),
                          .width = model.vector_width(),
                          .encoder = RecurrentCell::lstm,
                          .readout = ReadoutKind::identity,
                          .cutoffs = model.cutoffs,
                          .divisor = model.divisor};
    target = parameters_without_embedding(lstm);
  }
  const std::int64_t parts = model.state_parts();
  const auto count = [&](std::int64_t multiple) {
    return parameters_without_embedding(of_width(model, multiple * parts));
  };
  const std::int64_t narrowest = least_multiple(model);
  if (const std::int64_t least = count(narrowest); least > target)
    throw UsageError(text("count: a width for ", target, " parameters must exist, got a model that has ", least,
                          " at width ", narrowest * parts));
  // The number of parameters grows with the width: double, then halve the interval [below, above).
  std::int64_t below = narrowest, above = 2 * narrowest;
  while (count(above) <= target) {
    below = above;
    above *= 2;
  }
  while (above - below > 1) {
    const std::int64_t middle = below + (above - below) / 2;
    (count(middle) <= target ? below : above) = middle;
  }
  const std::int64_t under = count(below), over = count(above);
  const bool smaller = target - under <= over - target;
  return {.width = (smaller ? below : above) * parts, .parameters = smaller ? under : over, .target = target};
}

}  // namespace engram
