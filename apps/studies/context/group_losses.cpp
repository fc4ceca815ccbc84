#include "apps/studies/context/group_losses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/stopwatch.hpp"

namespace engram {

void check_group(const std::vector<StudiedRun>& runs, ContextMethod method) {
  if (runs.size() < 2)
    throw UsageError(text("recl: the length is relative to a group of two or more runs, got ", runs.size()));
  for (const StudiedRun& run : runs)
    if (method == ContextMethod::windowed && !run.is_transformer_xl())
      throw UsageError(text("recl: --method windowed is for runs of family transformer_xl, got '", run.name,
                            "' of family ", name_of(run.config.model.family), "\n  --method exact is for all"));
}

std::vector<std::vector<double>> losses_of(const StudiedRun& run, const std::vector<std::int64_t>& lengths,
                                           ContextMethod method, PositionReader& reader,
                                           const std::function<void(std::int64_t length)>& begins) {
  std::vector<std::vector<double>> losses;
  const std::int64_t longest = PositionReader::longest(run).value_or(lengths.back());
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (i > 0 && lengths[i - 1] >= longest) {  // nothing more is read
      losses.push_back(losses.back());
      continue;
    }
    begins(lengths[i]);
    const Stopwatch watch;
    losses.push_back(method == ContextMethod::exact ? reader.exact(lengths[i]) : reader.windowed(lengths[i]));
    if (!std::ranges::all_of(losses.back(), [](double loss) { return std::isfinite(loss); }))
      throw UsageError(text("recl: losses must be finite, got one of '", run.name, "' that is not, with ", lengths[i],
                            " tokens of context\n  leave out runs that diverged"));
    const double seconds = watch.seconds();
    log(LogLevel::info, fmt::format("recl: {}, {} tokens of context in {:.1f} s", run.name, lengths[i], seconds));
  }
  return losses;
}

}  // namespace engram
