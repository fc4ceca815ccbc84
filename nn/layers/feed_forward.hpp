#pragma once

#include <cstdint>
#include <string_view>

#include "core/names.hpp"
#include "nn/layers/linear.hpp"
#include "nn/layers/state_dropout.hpp"

namespace engram {

/// What a feed-forward sublayer puts between its two maps.
enum class Activation : std::uint8_t {
  relu,  ///< max(x, 0)
  gelu   ///< x Phi(x), the exact form: Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016)
};
constexpr auto names_of(Activation) {
  return std::to_array<Named<Activation>>({{Activation::relu, "relu"}, {Activation::gelu, "gelu"}});
}

/// W2 Dropout(f(W1 x + b1)) + b2 with f = relu, the feed-forward sublayer of Vaswani et al. (2017), eq. 2, with dropout
/// on the activations as in the adaptive-span models; or with f = gelu.
class FeedForward final : public Module {
 public:
  FeedForward(std::int64_t width, std::int64_t inner, double dropout, Activation activation = Activation::relu);
  /// A feed-forward network whose maps both start as `start`.
  FeedForward(std::int64_t width, std::int64_t inner, const StateDropout& dropout, const LinearStart& start);
  /// x: [..., width] -> [..., width].
  Variable forward(const Variable& x);
  void visit(Visitor& visit) override;

 private:
  Linear inner_, outer_;
  StateDropout dropout_;
  Activation activation_ = Activation::relu;
};

}  // namespace engram
