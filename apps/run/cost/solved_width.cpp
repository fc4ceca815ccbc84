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

}  // namespace

std::int64_t parameters_without_embedding(const RecurrentOptions& model) {
  RecurrentModel counted(model);
  ParameterStore store;
  collect(counted, store);
  return store.count() - model.vocabulary * model.vector_width();
}

SolvedWidth solve_width(const RecurrentOptions& model, std::int64_t target) {
  if (target == 0) {
    RecurrentOptions lstm{.vocabulary = model.vocabulary,
                          .embedding_width = model.vector_width(),
                          .width = model.vector_width(),
                          .encoder = RecurrentCell::lstm,
                          .readout = ReadoutKind::identity};
    target = parameters_without_embedding(lstm);
  }
  const std::int64_t parts = model.state_parts();
  const auto count = [&](std::int64_t multiple) {
    return parameters_without_embedding(of_width(model, multiple * parts));
  };
  if (const std::int64_t least = count(1); least > target)
    throw UsageError(text("count: a width for ", target, " parameters must exist, got a model that has ", least,
                          " at width ", parts));
  // The number of parameters grows with the width: double, then halve the interval [below, above).
  std::int64_t below = 1, above = 2;
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
