#pragma once
/// Losses of chosen positions of a text when the model has seen only so many tokens before them: l(c, t) of
/// [transformer-xl 6.6].

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/studies/context/studied_run.hpp"
#include "core/names.hpp"

namespace engram {

enum class ContextMethod : std::uint8_t {
  exact,    ///< the model reads the c tokens from an empty memory
  windowed  ///< one pass over the text in which every query sees c positions; what layers remember leaks from farther
};
constexpr auto names_of(ContextMethod) {
  return std::to_array<Named<ContextMethod>>({{ContextMethod::exact, "exact"}, {ContextMethod::windowed, "windowed"}});
}

/// `count` different places of targets that have `before` tokens before them, the same for the same seed; increasing.
/// Throws UsageError naming the facts when there are not so many.
std::vector<std::int64_t> draw_positions(data::TokenView tokens, std::int64_t count, std::int64_t before,
                                         std::uint64_t seed);

/// A model of a study with its weights.
class PositionReader {
 public:
  /// `tokens` and `runtime` must outlive it. `clamp`: of models of family transformer_xl; none: the run's.
  PositionReader(const StudiedRun& run, data::TokenView tokens, std::vector<std::int64_t> positions,
                 std::optional<std::int64_t> clamp, Runtime& runtime, DType dtype);

  /// The most context that the model reads: one with absolute positions the training length. None: no limit.
  static std::optional<std::int64_t> longest(const StudiedRun& run);
  /// Nats, of every position with `length` tokens before it, or longest() where that is less. One segment of so many
  /// tokens from an empty memory, many positions side by side, so that every one sees all tokens before it in its
  /// segment. (The same as shorter segments whose memory has room for all of them.)
  std::vector<double> exact(std::int64_t length);
  /// Losses of the positions from one pass over the text with a memory of `length` positions and visibility
  /// last_memory; without memory exact(). Throws Error for models of family all_attention, which have no such
  /// visibility.
  std::vector<double> windowed(std::int64_t length);
  /// Is told how many of the positions that are read have been: of exact() those of the study, of windowed() all.
  void watch(EvaluationWatch watch) { watch_ = std::move(watch); }

 private:
  StudiedRun run_;
  data::TokenView tokens_;
  std::vector<std::int64_t> positions_;
  EvaluationWatch watch_;
  std::optional<std::int64_t> clamp_;
  TrainedModel trained_;
};

}  // namespace engram
