#pragma once
/// How attention of the Transformer-XL family knows positions.

#include <cstdint>
#include <string_view>

#include "core/names.hpp"

namespace engram {

/// How attention knows positions ([transformer-xl 1.3, 1.8]).
enum class PositionKind : std::uint8_t {
  relative,             ///< sinusoids of distances, projected by every layer, with biases u and v of the queries
  shaw,                 ///< a learned vector for every distance and head: Shaw et al. (2018)
  absolute_sinusoidal,  ///< sinusoids added to the embeddings: Vaswani et al. (2017)
  absolute_learned  ///< a learned vector for every position, added to the input of every layer: Al-Rfou et al. (2018)
};
constexpr auto names_of(PositionKind) {
  return std::to_array<Named<PositionKind>>({{PositionKind::relative, "relative"},
                                             {PositionKind::shaw, "shaw"},
                                             {PositionKind::absolute_sinusoidal, "absolute_sinusoidal"},
                                             {PositionKind::absolute_learned, "absolute_learned"}});
}
/// What positions `shaw` has in its scores.
enum class ShawTerms : std::uint8_t {
  ab,   ///< q k + q e: the paper's baseline
  abcd  ///< with a bias of the queries and a scalar for every distance, as in the released program
};
constexpr auto names_of(ShawTerms) {
  return std::to_array<Named<ShawTerms>>({{ShawTerms::ab, "ab"}, {ShawTerms::abcd, "abcd"}});
}

}  // namespace engram
