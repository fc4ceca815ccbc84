#pragma once
/// The k best of a list of scores, in order, without sorting the list: the innermost loop of selection from keys.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <type_traits>

#include "core/rules/score_order.hpp"
#include "cpu/vector_bytes.hpp"

#if defined(__AVX512F__) && defined(__AVX512VL__)
#define ENGRAM_COMPRESSES 1
#include <immintrin.h>
#endif

namespace engram::cpu {

#if defined(ENGRAM_COMPRESSES)
namespace detail {

inline unsigned lanes_that_reach(const float* scores, float threshold) {
  return _mm512_cmp_ps_mask(_mm512_loadu_ps(scores), _mm512_set1_ps(threshold), _CMP_GE_OQ);
}
inline unsigned lanes_that_reach(const double* scores, double threshold) {
  return _mm512_cmp_pd_mask(_mm512_loadu_pd(scores), _mm512_set1_pd(threshold), _CMP_GE_OQ);
}
/// to[0 ..) = first + lane of the lanes in the mask, ascending; returns how many. As many as there are lanes are
/// written, the others meaningless.
template <int kLanes>
int put_lanes(unsigned mask, std::int32_t first, std::int32_t* to) {
  if constexpr (kLanes == 16) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i places = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
    _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(static_cast<__mmask16>(mask), places));
    return std::popcount(mask & 0xffffu);
  } else {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i places = _mm256_add_epi32(lanes, _mm256_set1_epi32(first));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_maskz_compress_epi32(static_cast<__mmask8>(mask), places));
    return std::popcount(mask & 0xffu);
  }
}

}  // namespace detail
#endif

/// Works in two passes over the list. The first finds a threshold: of the largest scores of L classes (place modulo L),
/// the k-th largest is a score that at least k places reach, and of random lists not many more than 1.4 k when L = 2 k.
/// The second collects the places that reach it; should they become many (lists with many equal scores, or sorted
/// ones), the best k of them are kept and the threshold is raised. So the cost is that of reading the list twice, and
/// for the worst list a constant times that. Both passes compare whole vectors of scores as they are; images are made
/// of the classes' largest and of what was collected. Little depends on branches, which random scores would have
/// guessed wrong.
template <class T>
class TopScores {
  using Image = ScoreImage<T>;
  using Bits = std::make_unsigned_t<Image>;

 public:
  /// Bytes of the memory that one of them needs, aligned to 64, for up to k places.
  static std::size_t bytes(std::int64_t k) {
    return static_cast<std::size_t>(classes_for(k) + 2 * capacity_for(k)) * sizeof(Image) +
           static_cast<std::size_t>(capacity_for(k)) * sizeof(std::int32_t);
  }
  TopScores(void* memory, std::int64_t most)
      : maxima_(static_cast<Image*>(memory)),
        images_(maxima_ + classes_for(most)),
        spare_(images_ + capacity_for(most)),
        places_(reinterpret_cast<std::int32_t*>(spare_ + capacity_for(most))) {}

  /// best[0 .. k) = places of the k best of `count` scores, best first: by score, descending (score_image), then by
  /// place, ascending. 1 <= k <= count < 2^31, k no larger than the memory is for. next: as many scores that are looked
  /// at after these, whose lines are asked for on the way; or none.
  void select(const T* scores, std::int64_t count, std::int64_t k, std::int32_t* best, const T* next = nullptr) {
    k_ = k;
    classes_ = classes_for(k);
    set_threshold(count > classes_ ? reached_by_k(scores, count) : kNaNImage<T>);
    collect(scores, count, next);
    if (size_ < k) {  // the threshold is of numbers alone, and k numbers there are not
      set_threshold(kNaNImage<T>);
      collect(scores, count, nullptr);
    }
    take_images(scores);
    rank(best);
  }

 private:
  static constexpr std::int64_t kBlock = 64;    // places that are looked at together
  static constexpr std::int64_t kRanked = 256;  // up to as many, comparing all pairs is faster than sorting
  static constexpr std::int64_t kLanes = kVectorBytes / static_cast<std::int64_t>(sizeof(Image));
  static constexpr int kVectors = 4;  // of class maxima, in registers
  using Images __attribute__((vector_size(kVectorBytes))) = Image;
  using Scores __attribute__((vector_size(kVectorBytes))) = T;

  static constexpr std::int64_t classes_for(std::int64_t k) { return (2 * k + 63) / 64 * 64; }
  // Room for more than is kept, so that keeping pays.
  static constexpr std::int64_t capacity_for(std::int64_t k) { return 4 * classes_for(k); }

  /// What is collected: places whose image is no less. Images between those of NaN and -infinity are nobody's.
  void set_threshold(Image threshold) {
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    everything_ = threshold == kNaNImage<T>;
    threshold_ = threshold <= score_image(-kInfinity) ? -kInfinity : score_of_image<T>(threshold);
  }

  /// The image of a score that at least k places reach, where as many are numbers.
  Image reached_by_k(const T* scores, std::int64_t count) {
    constexpr std::int64_t kStep = kVectors * kLanes;
    const std::int64_t whole = count - count % kStep;
    for (std::int64_t first = 0; first < classes_; first += kStep) {
      Scores best[kVectors];
      for (Scores& of_lane : best) of_lane = Scores{} - std::numeric_limits<T>::infinity();
      for (std::int64_t at = first; at < whole; at += classes_)
        for (int i = 0; i < kVectors; ++i) {
          Scores other;
          std::memcpy(&other, scores + at + i * kLanes, sizeof other);
          best[i] = other > best[i] ? other : best[i];  // not NaN
        }
      for (int i = 0; i < kVectors; ++i)
        for (std::int64_t lane = 0; lane < kLanes; ++lane)
          maxima_[first + i * kLanes + lane] = score_image(best[i][lane]);
    }
    Image* const of_rest = maxima_ + whole % classes_;
    for (std::int64_t i = 0; i < count - whole; ++i) of_rest[i] = std::max(of_rest[i], score_image(scores[whole + i]));
    // Bisection, until no more than an eighth too many reach it.
    Image low = *std::min_element(maxima_, maxima_ + classes_), high = *std::max_element(maxima_, maxima_ + classes_);
    for (int round = 0; low < high; ++round) {
      const Image middle = middle_of(low, high, round);
      Image reach = 0;
      for (std::int64_t i = 0; i < classes_; ++i) reach += maxima_[i] >= middle ? 1 : 0;
      low = reach >= k_ ? middle : low;
      high = reach >= k_ ? high : middle - 1;
      if (reach >= k_ && reach <= k_ + k_ / 8) break;
    }
    return low;
  }

  /// Above low, at most high. By value first: half of the images between a negative and a positive number are those of
  /// numbers near 0, where few scores are. The random 128 of a 16th best take 4 rounds so, 10 by images.
  static Image middle_of(Image low, Image high, int round) {
    constexpr int kByValue = 8;
    if (round >= kByValue || low < score_image(std::numeric_limits<T>::lowest()) ||
        high > score_image(std::numeric_limits<T>::max()))
      return std::midpoint(high, low);
    return std::max<Image>(low + 1, score_image(score_of_image<T>(low) / 2 + score_of_image<T>(high) / 2));
  }

  /// Every place that reaches the threshold, in ascending order.
  void collect(const T* scores, std::int64_t count, const T* next) {
    size_ = 0;
    for (std::int64_t first = 0; first < count; first += kBlock) {
      if (size_ + kBlock > capacity_for(k_)) keep_best(scores);
      const std::int64_t length = std::min(kBlock, count - first);
      if (next != nullptr)
        for (std::int64_t i = 0; i < kBlock; i += 64 / static_cast<std::int64_t>(sizeof(T)))
          __builtin_prefetch(next + first + std::min(i, length - 1));
      if (length == kBlock) {
        size_ = add_block(scores + first, static_cast<std::int32_t>(first), size_);
        continue;
      }
      T block[kBlock];
      std::copy_n(scores + first, length, block);
      std::fill(block + length, block + kBlock, std::numeric_limits<T>::quiet_NaN());
      size_ = add_block(block, static_cast<std::int32_t>(first), size_) - (everything_ ? kBlock - length : 0);
    }
  }

  /// Puts those of kBlock places from `first` on that reach the threshold behind `size` others; returns how many there
  /// are then. What lies behind them, up to kBlock places, becomes meaningless.
  std::int64_t add_block(const T* scores, std::int32_t first, std::int64_t size) const {
    std::int32_t* const places = places_;
#if defined(ENGRAM_COMPRESSES)
    const unsigned all = everything_ ? ~0u : 0u;
    for (int i = 0; i < kBlock; i += static_cast<int>(kLanes)) {
      const unsigned reached = detail::lanes_that_reach(scores + i, threshold_) | all;
      size += detail::put_lanes<kLanes>(reached, first + i, places + size);
    }
#else
    std::uint64_t reached = everything_ ? ~std::uint64_t{0} : places_that_reach(scores);
    // Eight at a time, of which the last may be meaningless: fewer branches are fewer wrong guesses.
    for (std::int32_t* to = places + size; reached != 0; to += 8) {
      size += std::min(8, std::popcount(reached));
      for (int i = 0; i < 8; ++i, reached &= reached - 1) to[i] = first + std::countr_zero(reached);
    }
#endif
    return size;
  }

#if !defined(ENGRAM_COMPRESSES)
  /// Bit i: place i of a block reaches the threshold.
  std::uint64_t places_that_reach(const T* block) const {
    constexpr int kBits = 8 * sizeof(Image);
    std::uint64_t all = 0;
    for (int part = 0; part < kBlock; part += kBits) {
      Bits bits = 0;
      for (int i = 0; i < kBits; ++i) bits |= block[part + i] >= threshold_ ? Bits{1} << i : Bits{0};
      all |= std::uint64_t{bits} << part;
    }
    return all;
  }
#endif

  void take_images(const T* scores) {
    for (std::int64_t i = 0; i < size_; ++i) images_[i] = score_image(scores[places_[i]]);
  }

  /// Keeps the best k of those collected. Later places lose to equal ones, so the threshold rises above their least.
  void keep_best(const T* scores) {
    take_images(scores);
    std::copy_n(images_, size_, spare_);
    std::nth_element(spare_, spare_ + (k_ - 1), spare_ + size_, std::greater<>());
    const Image least = spare_[k_ - 1];
    std::int64_t equal = k_ - std::count_if(images_, images_ + size_, [least](Image x) { return x > least; });
    std::int64_t kept = 0;
    for (std::int64_t i = 0; i < size_; ++i) {
      if (images_[i] < least || (images_[i] == least && equal-- <= 0)) continue;
      places_[kept++] = places_[i];
    }
    size_ = kept;
    set_threshold(least + 1);  // no number has the largest image
  }

  void rank(std::int32_t* best) {
    std::int32_t* const ranked = reinterpret_cast<std::int32_t*>(spare_);
    if (size_ > kRanked) {
      std::int32_t* const order = ranked;
      std::iota(order, order + size_, 0);  // collected in order of places
      std::partial_sort(order, order + k_, order + size_, [this](std::int32_t a, std::int32_t b) {
        return images_[a] != images_[b] ? images_[a] > images_[b] : a < b;
      });
      for (std::int64_t i = 0; i < k_; ++i) best[i] = places_[order[i]];
      return;
    }
    // With lanes of NaN behind the last, which rank last, so that the number of rounds is easy to guess.
    const std::int64_t padded = (size_ + kLanes - 1) / kLanes * kLanes;
    std::fill(images_ + size_, images_ + padded, kNaNImage<T>);
    Images lanes;
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] = static_cast<Image>(lane);
    for (std::int64_t first = 0; first < padded; first += kLanes) {
      Images mine, ranks = {};  // a comparison that holds is -1
      std::memcpy(&mine, images_ + first, sizeof mine);
      for (std::int64_t i = 0; i < first; ++i) ranks -= Images{} + images_[i] >= mine;
      for (std::int64_t i = 0; i < kLanes; ++i) {
        const Images other = Images{} + images_[first + i];
        ranks -= (other > mine) | ((other == mine) & (lanes > Images{} + static_cast<Image>(i)));
      }
      for (std::int64_t i = first + kLanes; i < padded; ++i) ranks -= Images{} + images_[i] > mine;
      for (std::int64_t lane = 0; lane < kLanes; ++lane) ranked[ranks[lane]] = places_[first + lane];
    }
    std::copy_n(ranked, k_, best);
  }

  std::int64_t k_ = 0, classes_ = 0, size_ = 0;
  bool everything_ = false;  // NaN is collected too, whatever the threshold
  T threshold_ = 0;
  Image *maxima_, *images_, *spare_;
  std::int32_t* places_;  // of the images, ascending
};

}  // namespace engram::cpu
