#pragma once
/// The k best of a list of scores, in order, without sorting the list: the innermost loop of selection from keys.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>

#include "core/score_order.hpp"
#include "cpu/vector_bytes.hpp"

namespace engram::cpu {

/// Works in two passes over the list. The first finds a threshold: of the largest scores of L classes (place modulo L),
/// the k-th largest is a score that at least k places reach, and of random lists not many more than 1.4 k when L = 2 k.
/// The second collects the places that reach it; should they become many (lists with many equal scores, or sorted
/// ones), the best k of them are kept and the threshold is raised. So the cost is that of reading the list twice, and
/// for the worst list a constant times that. Little depends on branches, which random scores would have guessed wrong.
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
  /// place, ascending. 1 <= k <= count < 2^31, k no larger than the memory is for.
  void select(const T* scores, std::int64_t count, std::int64_t k, std::int32_t* best) {
    k_ = k;
    size_ = 0;
    classes_ = classes_for(k);
    threshold_ = count > classes_ ? reached_by_k(scores, count) : kNaNImage<T>;
    collect(scores, count);
    take_images(scores);
    rank(best);
  }

 private:
  static constexpr std::int64_t kBlock = 64;    // places that are looked at together
  static constexpr std::int64_t kRanked = 256;  // up to as many, comparing all pairs is faster than sorting
  static constexpr std::int64_t kLanes = kVectorBytes / static_cast<std::int64_t>(sizeof(Image));
  using Images __attribute__((vector_size(kVectorBytes))) = Image;

  static constexpr std::int64_t classes_for(std::int64_t k) { return (2 * k + 63) / 64 * 64; }
  // Room for more than is kept, so that keeping pays.
  static constexpr std::int64_t capacity_for(std::int64_t k) { return 4 * classes_for(k); }

  /// A score that at least k places reach.
  Image reached_by_k(const T* scores, std::int64_t count) {
    for (std::int64_t i = 0; i < classes_; ++i) maxima_[i] = score_image(scores[i]);
    std::int64_t first = classes_;
    for (; first + classes_ <= count; first += classes_)
      for (std::int64_t i = 0; i < classes_; ++i) maxima_[i] = std::max(maxima_[i], score_image(scores[first + i]));
    for (std::int64_t i = first; i < count; ++i)
      maxima_[i - first] = std::max(maxima_[i - first], score_image(scores[i]));
    // Bisection, until no more than an eighth too many reach it.
    Image low = *std::min_element(maxima_, maxima_ + classes_), high = *std::max_element(maxima_, maxima_ + classes_);
    while (low < high) {
      const Image middle = std::midpoint(high, low);  // above low
      Image reach = 0;
      for (std::int64_t i = 0; i < classes_; ++i) reach += maxima_[i] >= middle ? 1 : 0;
      low = reach >= k_ ? middle : low;
      high = reach >= k_ ? high : middle - 1;
      if (reach >= k_ && reach <= k_ + k_ / 8) break;
    }
    return low;
  }

  /// Every place that reaches the threshold, in ascending order.
  void collect(const T* scores, std::int64_t count) {
    Image block[kBlock];
    for (std::int64_t first = 0; first < count; first += kBlock) {
      const std::int64_t length = std::min(kBlock, count - first);
      if (length < kBlock) std::fill(block + length, block + kBlock, kNaNImage<T>);
      if (length == kBlock)  // a constant number is faster
        for (std::int64_t i = 0; i < kBlock; ++i) block[i] = score_image(scores[first + i]);
      else
        for (std::int64_t i = 0; i < length; ++i) block[i] = score_image(scores[first + i]);
      std::uint64_t reached = places_that_reach(block);
      if (length < kBlock) reached &= (std::uint64_t{1} << length) - 1;
      if (reached == 0) continue;
      if (size_ + kBlock > capacity_for(k_)) keep_best(scores);
      // Eight at a time, of which the last may be meaningless: fewer branches are fewer wrong guesses.
      std::int32_t* to = places_ + size_;
      size_ += std::popcount(reached);
      do {
        for (int i = 0; i < 8; ++i, reached &= reached - 1)
          to[i] = static_cast<std::int32_t>(first) + std::countr_zero(reached);
        to += 8;
      } while (reached != 0);
    }
  }

  /// Bit i: place i of a block reaches the threshold.
  std::uint64_t places_that_reach(const Image* block) const {
    constexpr int kBits = 8 * sizeof(Image);
    std::uint64_t all = 0;
    for (int part = 0; part < kBlock; part += kBits) {
      Bits bits = 0;
      for (int i = 0; i < kBits; ++i) bits |= block[part + i] >= threshold_ ? Bits{1} << i : Bits{0};
      all |= std::uint64_t{bits} << part;
    }
    return all;
  }

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
    threshold_ = least + 1;  // no number has the largest image
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
  Image threshold_ = 0;
  Image *maxima_, *images_, *spare_;
  std::int32_t* places_;  // of the images, ascending
};

}  // namespace engram::cpu
