#pragma once
/// What the matrices of attention start as, in the all-attention family.

#include <cstdint>

#include "core/names.hpp"

namespace engram {

/// From which range the four matrices of attention start ([all-attention 1.9]); d is the width.
enum class AttentionStart : std::uint8_t {
  inverse_root,  ///< U(-1/sqrt d, 1/sqrt d): the released models
  root           ///< U(-sqrt d, sqrt d): what the paper prints
};
constexpr auto names_of(AttentionStart) {
  return std::to_array<Named<AttentionStart>>(
      {{AttentionStart::inverse_root, "inverse_root"}, {AttentionStart::root, "root"}});
}

}  // namespace engram
