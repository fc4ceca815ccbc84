#include "apps/run/training/first_step_memory.hpp"

#include "apps/run/training/step_memory.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Spans as the run has them are not those that a count begins with.
bool has_learned_spans(const TrainingSession& session) {
  return session.config.model.family == ModelFamily::all_attention &&
         session.config.model.all_attention.span == SpanKind::adaptive &&
         (session.trainer.steps() > 0 || !session.origin.empty());
}

/// The first blocks of the training split: where words are in clusters, what a step takes depends on them.
data::TokenView first_blocks(const TrainingSession& session) {
  const data::TokenView all = session.data.split("train");
  return session.config.model.cutoffs().empty() ? data::TokenView() : all;
}

}  // namespace

void take_memory_of_steps(TrainingSession& session) {
  Runtime& runtime = session.runtime;
  const Device device = runtime.backend().device();
  if (!takes_room(device) || has_learned_spans(session)) return;
  try {
    const StepMemory counted = count_step_memory(session.config, first_blocks(session),
                                                 {.device = device,
                                                  .threads = runtime.backend().threads(),
                                                  .ranks = runtime.ranks().size(),
                                                  .rank = runtime.ranks().rank(),
                                                  .dtype = session.store.dtype()});
    take_room(runtime.arena(), counted.arena);
  } catch (const OutOfMemory&) {  // the first step says it, or gets by with less
  }
}

}  // namespace engram
