#include "apps/run/training/machine_memory.hpp"

#if defined(__linux__)
#include <sys/sysinfo.h>
#endif

#include <fmt/format.h>

#include <memory>

#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/cost/rank_memory.hpp"
#include "apps/run/cost/training_state.hpp"
#include "apps/run/model/frozen_parameters.hpp"
#include "apps/run/training/rank_setting.hpp"
#include "core/error.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

std::string in_gibibytes(double bytes) { return fmt::format("{:.3g} GiB", bytes / static_cast<double>(1 << 30)); }

}  // namespace

std::int64_t machine_memory_bytes() {
#if defined(__linux__)
  struct sysinfo facts {};
  if (::sysinfo(&facts) != 0) return 0;
  return static_cast<std::int64_t>((facts.totalram + facts.totalswap) * facts.mem_unit);
#else
  return 0;
#endif
}

void require_machine_memory(const RunConfig& config, int ranks, int ranks_here, std::int64_t available) {
  const ModelOptions& model = config.model;
  const std::unique_ptr<LanguageModel> made = make_model(model);
  const std::int64_t parameters = count_parameters(*made).total;
  const TableSizes tables = table_sizes(model.memories(), model.width(), model.layers(), config.optimizer.tables);
  training_state_bytes(parameters, tables, config.optimizer.kind);  // what does not fit a number fits no machine
  ParameterStore store;
  collect(*made, store);
  freeze_parameters(store, config.training.freeze);
  const std::int64_t needed = largest_rank_memory(rank_setting(config), store, ranks).total();
  if (available > 0 && needed > available / ranks_here)
    throw OutOfMemory(
        text("training: the machine's memory and swap, ", in_gibibytes(static_cast<double>(available)),
             ", must hold the ", parameters, " parameters with gradients, optimiser state and sums over pieces",
             ranks > 1 ? text(" of ", ranks_here, " of the ", ranks, " ranks") : std::string(), ", got ",
             in_gibibytes(static_cast<double>(needed) * ranks_here), " of them\n  engram count says where they are"));
}

}  // namespace engram
