#include "apps/run/training/machine_memory.hpp"

#if defined(__linux__)
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#endif

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
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

std::int64_t process_memory_bytes() {
#if defined(__linux__)
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
  std::int64_t pages = 0;  // that it has
  std::ifstream("/proc/self/statm") >> pages;
  constexpr rlim_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto most = static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, kMost));
  return std::max<std::int64_t>(1, most - pages * ::sysconf(_SC_PAGESIZE));
#else
  return 0;
#endif
}

void require_machine_memory(const RunConfig& config, int ranks, int ranks_here, std::int64_t available,
                            std::int64_t of_process) {
  const ModelOptions& model = config.model;
  const std::unique_ptr<LanguageModel> made = make_model(model);
  const std::int64_t parameters = count_parameters(*made).total;
  const TableSizes tables = table_sizes(model.memories(), model.width(), model.layers(), config.optimizer.tables);
  training_state_bytes(parameters, tables, config.optimizer.kind);  // what does not fit a number fits no machine
  ParameterStore store;
  collect(*made, store);
  freeze_parameters(store, config.training.freeze);
  const std::int64_t needed = largest_rank_memory(rank_setting(config), store, ranks).total();
  const auto require = [&](const char* what, std::int64_t there, int sharing) {
    if (there <= 0 || needed <= there / sharing) return;
    const std::string of_ranks = ranks > 1 ? text(" of ", sharing, " of the ", ranks, " ranks") : "";
    throw OutOfMemory(text("training: ", what, ", ", in_gibibytes(static_cast<double>(there)), ", must hold the ",
                           parameters, " parameters with gradients, optimiser state and sums over pieces", of_ranks,
                           ", got ", in_gibibytes(static_cast<double>(needed) * sharing),
                           " of them\n  engram count says where they are"));
  };
  require("the machine's memory and swap", available, ranks_here);
  require("what a process may take (ulimit -v) beside what it has", of_process, 1);
}

}  // namespace engram
