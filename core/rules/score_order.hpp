#pragma once
/// How product-key memories order scores, and which combinations of ranks can be among the best: shared by all devices.
/// [product-key 3].

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/host_device.hpp"

namespace engram {

/// A whole number that is ordered as scores are.
template <class T>
using ScoreImage = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

/// Of the image of NaN; every number's is larger.
template <class T>
inline constexpr ScoreImage<T> kNaNImage = std::numeric_limits<ScoreImage<T>>::min();

/// Larger for larger scores, equal for equal ones: 0 and -0 are equal, and so are all NaN, which are below every
/// number.
template <class T>
ENGRAM_HD constexpr ScoreImage<T> score_image(T score) {
  using Image = ScoreImage<T>;
  const Image bits = std::bit_cast<Image>(score + T(0));  // -0 + 0 is 0
  const Image image = bits ^ ((bits >> (8 * sizeof(T) - 1)) & std::numeric_limits<Image>::max());
  return score != score ? kNaNImage<T> : image;
}

/// The score of an image that is not NaN's.
template <class T>
ENGRAM_HD constexpr T score_of_image(ScoreImage<T> image) {
  using Image = ScoreImage<T>;
  return std::bit_cast<T>(image ^ ((image >> (8 * sizeof(T) - 1)) & std::numeric_limits<Image>::max()));
}

/// A slot is a tuple of ranks (p, q, r) >= 0 in the sorted lists of 1 to 3 sets; ranks of missing sets are 0. A sum of
/// scores never falls when one of them rises, rounded or not: each addition is monotone, and so is (s1 + s2) + s3. So
/// all (p', q', r') <= (p, q, r) come no later than it, by their sum or, where the sums are equal, by their ranks, and
/// the tuple can be among the first k only if (p + 1) (q + 1) (r + 1) <= k.
///
/// Calls body(q, r) for those of them whose first rank is p, in ascending order, with ranks below `length`, the length
/// of each list. p < length <= k.
template <class Body>
ENGRAM_HD constexpr void for_each_rank_after(int sets, std::int64_t length, std::int64_t k, std::int64_t p, Body body) {
  const auto shorter = [length](std::int64_t count) { return count < length ? count : length; };
  const std::int64_t seconds = sets > 1 ? shorter(k / (p + 1)) : 1;
  for (std::int64_t q = 0; q < seconds; ++q) {
    const std::int64_t thirds = sets > 2 ? shorter(k / ((p + 1) * (q + 1))) : 1;
    for (std::int64_t r = 0; r < thirds; ++r) body(q, r);
  }
}

/// How many tuples with first rank p there are.
ENGRAM_HD constexpr std::int64_t count_ranks_after(int sets, std::int64_t length, std::int64_t k, std::int64_t p) {
  std::int64_t count = 0;
  for_each_rank_after(sets, length, k, p, [&count](std::int64_t, std::int64_t) { ++count; });
  return count;
}

/// How many tuples of ranks there are.
ENGRAM_HD constexpr std::int64_t count_rank_tuples(int sets, std::int64_t length, std::int64_t k) {
  std::int64_t count = 0;
  for (std::int64_t p = 0; p < length; ++p) count += count_ranks_after(sets, length, k, p);
  return count;
}

}  // namespace engram
