#include "apps/run/training/machine_memory.hpp"

#if defined(__linux__)
#include <sys/sysinfo.h>
#endif

#include <fmt/format.h>

#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/cost/training_state.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

std::string in_gibibytes(std::int64_t bytes) {
  return fmt::format("{:.3g} GiB", static_cast<double>(bytes) / static_cast<double>(1 << 30));
}

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

void require_machine_memory(const RunConfig& config, std::int64_t available, int ranks) {
  const ModelOptions& model = config.model;
  const std::int64_t parameters = count_parameters(*make_model(model)).total;
  const TableSizes whole = table_sizes(model.memories(), model.width(), model.layers(), config.optimizer.tables);
  const TableSizes tables = whole.shared_by(ranks);
  const std::int64_t needed = training_state_bytes(parameters, tables, config.optimizer.kind);
  if (available > 0 && needed > available)
    throw OutOfMemory(text("training: the machine's memory and swap, ", in_gibibytes(available), ", must hold the ",
                           parameters, " parameters with gradients and optimiser state, got ", in_gibibytes(needed),
                           " of them\n  engram count says where they are"));
}

}  // namespace engram
