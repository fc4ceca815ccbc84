#pragma once
/// How options of models, memories and optimisers are refused.

#include <string_view>
#include <type_traits>

#include "core/error.hpp"
#include "core/random_stream.hpp"

namespace engram {

/// Rules for the options of one part, whose messages all begin alike.
class OptionRules {
 public:
  /// `prefix`: what stands before the name of an option, as "model: ".
  constexpr explicit OptionRules(std::string_view prefix) : prefix_(prefix) {}

  /// Throws UsageError "<prefix><option> must be <rule>, got <value><advice>" unless `valid`.
  template <class T>
  void require(bool valid, std::string_view option, std::string_view rule, const T& value,
               std::string_view advice = "") const {
    if (!valid) throw UsageError(text(prefix_, option, " must be ", rule, ", got ", value, advice));
  }

  /// Requires a number in [least, most]; `meaning` stands behind the bounds, as ", 0 for none".
  template <class T>
  void within(std::string_view option, T value, std::type_identity_t<T> least, std::type_identity_t<T> most,
              std::string_view meaning = "") const {
    if (!(value >= least && value <= most)) require(false, option, text("from ", least, " to ", most, meaning), value);
  }

  /// Requires a rate that dropout takes.
  void dropout(std::string_view option, double rate) const {
    require(rate >= 0 && rate < DropoutRule::kRateLimit, option, "in [0, 1 - 2^-17)", rate);
  }

 private:
  std::string_view prefix_;
};

/// The options, once their check() has passed: for the lists of members of constructors.
template <class Options>
const Options& checked(const Options& options) {
  options.check();
  return options;
}

}  // namespace engram
