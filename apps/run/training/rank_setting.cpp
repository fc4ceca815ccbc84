#include "apps/run/training/rank_setting.hpp"

namespace engram {

RankSetting rank_setting(const RunConfig& config) {
  RankSetting setting{.optimizer = config.optimizer.kind,
                      .tables = config.optimizer.tables,
                      .activations = config.training.activations,
                      .batch = config.training.batch,
                      .row_tokens = config.training.block + config.training.extension,
                      .pieces = config.training.split,
                      .losses = static_cast<std::int64_t>(config.model.cutoffs().size()) + 1,
                      .averages = config.training.weight_average};
  if (config.model.family == ModelFamily::recurrent || !config.model.memories().any()) return setting;
  const ProductKeyOptions& memories = config.model.memories();
  setting.lookups = static_cast<std::int64_t>(memories.memory_layers(config.model.layers()).size());
  setting.lookup_reads = memories.heads * memories.selected;
  setting.lookup_numbers = memories.value_width_in(config.model.width());
  return setting;
}

}  // namespace engram
