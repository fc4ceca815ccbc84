#pragma once
/// The runs of a sweep, one for each variant and seed, all checked before the first one is trained.

#include <filesystem>
#include <string>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config.hpp"
#include "apps/studies/sweeps/sweep_plan.hpp"
#include "core/device.hpp"
#include "core/dtype.hpp"

namespace engram {

struct SweepOptions {
  std::filesystem::path config;        ///< TOML
  std::filesystem::path data;          ///< DATA_DIR
  std::filesystem::path out;           ///< folder of the sweep: a run's folder for each variant, and the tables
  std::vector<std::string> overrides;  ///< section.key=value, of all variants; theirs go before these
  std::vector<SweepVariant> variants;
  std::vector<std::uint64_t> seeds;  ///< empty: one run of each variant, with its configuration's seed
  Device device;
  DType dtype = DType::f32;  ///< of parameters: f32 or f64
  int threads = 0;           ///< 0: as many as there are
  bool test = false;         ///< evaluate on the test split as well
  bool exact = false;        ///< evaluate as `engram evaluate --exact` does
};

/// Whether there is such a file or folder; what cannot be looked at is not there.
bool is_there(const std::filesystem::path& path);

/// What is in a run's folder.
struct RunState {
  enum class Kind : unsigned char {
    fresh,       ///< nothing that could be gone on with
    unfinished,  ///< a checkpoint before the last step
    finished,
    diverged  ///< its training failed; it would fail again
  };
  Kind kind = Kind::fresh;
  std::int64_t step = 0;  ///< that it has come to
  std::string reason;     ///< of a divergence
};

struct SweepRun {
  std::size_t variant = 0;             ///< in SweepOptions::variants
  std::string name;                    ///< of the folder: the variant's, and with seeds -seed-N
  std::vector<std::string> overrides;  ///< all of them
  RunConfig config;                    ///< as resolved for the data
  data::TokenKind kind{};              ///< of the data
  std::filesystem::path folder;
  std::int64_t parameters = 0;
  RunState state;

  /// Tokens that all steps train on.
  std::int64_t tokens() const { return config.total_steps() * config.training.batch * config.training.block; }
};

/// Variant by variant, each with its seeds in order. Throws UsageError naming the variant, its keys and values when its
/// configuration is refused, does not fit the data, or when its folder holds a run with another configuration or data;
/// and for a folder of the sweep that holds something else.
std::vector<SweepRun> prepare_runs(const SweepOptions& options, const data::DataSet& data);

/// Sentences for the user: variants that are not trained on the same number of tokens.
std::vector<std::string> sweep_warnings(const SweepOptions& options, const std::vector<SweepRun>& runs);

/// Throws UsageError naming the folder and what differs when it is not one that the run may go on with.
RunState inspect_run(const SweepRun& run, DType dtype, const data::DataSet& data);

}  // namespace engram
