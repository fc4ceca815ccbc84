#pragma once
/// Which cards this machine has, and whether this build can use them.

#include <cstddef>
#include <cstdint>
#include <string>

namespace engram::card {

struct CardFacts {
  std::string name;
  int capability = 0;            ///< major times 10 plus minor: 90 for compute capability 9.0
  int processors = 0;            ///< streaming multiprocessors
  double clock = 0;              ///< of the multiprocessors, Hz, the highest
  std::size_t shared_bytes = 0;  ///< shared memory that a block can ask for
  /// Products by warpgroups (cuda/warpgroup.cuh): of compute capability 9.0 alone, of a build for 90, and as
  /// cuda/warpgroup_choice.hpp says.
  bool warpgroup_products = false;
};

/// Makes card number `index` the one of this thread. Throws DeviceError that says what to do: no driver, a driver that
/// is too old for this program, no card, no such index, a card that this build has no kernels for.
CardFacts find_card(int index);

}  // namespace engram::card
