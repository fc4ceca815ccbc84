#pragma once
/// Notices that a training has stopped improving: the paper fine-tunes from there ("Augmenting Self-attention with
/// Persistent Memory", section 5.1; the rule is that of [all-attention 5.3]).

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

namespace engram {

class PlateauWatch {
 public:
  /// On a plateau after so many validations in a row that are not better than the best by `margin` bits per token.
  PlateauWatch(std::int64_t validations, double margin) : patience_(validations), margin_(margin) {}

  /// Takes the result of a validation, in bits per token.
  void add(double bits);
  bool reached() const { return waited_ >= patience_; }

  nlohmann::json state() const;
  /// Throws UsageError for anything but what state() returned.
  void restore(const nlohmann::json& state);

 private:
  std::int64_t patience_;
  double margin_;
  double best_ = 0;  // that the next ones are measured by
  bool begun_ = false;
  std::int64_t waited_ = 0;
};

}  // namespace engram
