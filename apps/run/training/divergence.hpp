#pragma once
/// Notices a training that has gone wrong for good: its loss stays above one and a half times the best it has had,
/// where a best below a tenth of a guess counts as that: the loss of a text that is known by heart is near 0, and
/// varies by any factor. Single steps vary with the text, so the loss is first averaged over about the last hundred of
/// them. Short runs cannot stay there for long: theirs must not end above what a guess costs that knows nothing, ln V
/// nats of V tokens.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace engram {

class DivergenceWatch {
 public:
  static constexpr double kLimit = 1.5;            ///< times the running best
  static constexpr double kByHeart = 0.1;          ///< of a guess: the least that counts as a best
  static constexpr std::int64_t kPatience = 1000;  ///< steps above the limit in a row
  static constexpr double kDecay = 0.99;           ///< of the running mean, per step
  static constexpr double kHopeless = 10;          ///< times a guess, or the best if that is more: of no model

  /// For a vocabulary of so many tokens, at least 1.
  explicit DivergenceWatch(std::int64_t vocabulary);

  /// Takes the loss of a step, in nats per token.
  void add(double nll);
  /// Above the limit at present: such weights should not replace good ones.
  bool suspicious() const { return above_ > 0; }
  bool diverged() const { return above_ >= kPatience; }
  /// Above the limit, and that above a guess as well: nothing that a run may end with.
  bool lost() const { return suspicious() && mean() > kLimit * guess_; }
  /// Whether a loss of other text, in nats per token, can be that of no model, however much it has overfitted.
  bool is_hopeless(double nll) const;
  double mean() const { return weight_ > 0 ? sum_ / weight_ : 0; }
  double best() const { return best_; }
  double guess() const { return guess_; }

  nlohmann::json state() const;
  /// Throws UsageError for anything but what state() returned.
  void restore(const nlohmann::json& state);

 private:
  double guess_;                 // nats of a token that is guessed
  double sum_ = 0, weight_ = 0;  // exponential moving sums of the losses and of 1
  double best_ = 0;              // lowest mean; 0: none yet
  std::int64_t above_ = 0;
};

}  // namespace engram
