#include "apps/run/training/rank_split.hpp"

#include <bit>

#include "apps/data/files/read_file.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"

namespace engram {

std::int64_t pieces_for_ranks(std::int64_t asked, int ranks) {
  if (ranks == 1) return asked;
  const std::int64_t pieces = (asked + ranks - 1) / ranks;  // of a rank
  return ranks * static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(pieces)));
}

std::int64_t split_for_ranks(const RunConfig& config, int ranks) {
  const std::int64_t asked = config.training.split, batch = config.training.batch;
  const std::int64_t split = pieces_for_ranks(asked, ranks);
  if (ranks == 1) return split;
  if (split > batch || batch % split != 0)
    throw UsageError(text("training: batch must be a multiple of ", split, " for ", ranks, " ranks, got ", batch,
                          "\n  all have as many pieces of it, a power of two, and together at least the training.split "
                          "of ",
                          asked));
  return split;
}

std::string other_split_before(const std::filesystem::path& config_file, const RunConfig& config) {
  if (!std::filesystem::is_regular_file(config_file)) return {};
  std::int64_t before = 0;
  try {
    before = parse_run_config(data::read_bytes(config_file), config_file.string()).training.split;
  } catch (const Error&) {
    return {};  // of another version, or torn: it is replaced
  }
  if (before == config.training.split) return {};
  return text("training: the run that began in this folder and saved nothing had training.split = ", before,
              ", this one has ", config.training.split, ": the last bits will differ\n  --split ", before,
              " keeps them");
}

}  // namespace engram
