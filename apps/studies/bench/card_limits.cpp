#include "apps/studies/bench/card_limits.hpp"

#include <algorithm>
#include <array>

namespace engram {
namespace {

constexpr std::array<CardLimits, 3> kCards{{
    {"H200", 90, 132, 1.98e9, 4.8e12, 989e12, 67e12},
    {"A100", 80, 108, 1.41e9, 2.039e12, 312e12, 19.5e12},
    {"RTX 4090", 89, 128, 2.52e9, 1.008e12, 165.2e12, 82.6e12},
}};

constexpr double kFlopsPerMma = 2.0 * 16 * 8 * 16;
constexpr double kIssuedAClock = 4;  // by each multiprocessor

double global_wavefronts(const GlobalAccessCost& cost) {
  return std::max(static_cast<double>(cost.requests), static_cast<double>(cost.sectors) / 4);
}

}  // namespace

MachineLimits CardLimits::as_machine(ProductPrecision products) const {
  MachineLimits limits;
  limits.flops_per_second = products == ProductPrecision::bf16 ? bf16_flops_per_second : f32_flops_per_second;
  limits.bf16_flops_per_second = bf16_flops_per_second;
  limits.bytes_per_second = bytes_per_second;
  limits.exponentials_per_second = exponentials_per_second();
  return limits;
}

std::span<const CardLimits> known_cards() { return kCards; }

bool can_launch(const CardLimits& card, const LaunchCost& launch) {
  return card.capability == 90 || launch.place.find("/warpgroup_") == std::string::npos;
}

const char* name_of(CardTime::Bound bound) {
  switch (bound) {
    case CardTime::Bound::memory:
      return "memory";
    case CardTime::Bound::l1:
      return "L1";
    case CardTime::Bound::issue:
      return "issue";
    case CardTime::Bound::mma:
      return "mma";
    case CardTime::Bound::exponentials:
      return "exp";
    case CardTime::Bound::product:
      return "product";
    case CardTime::Bound::nothing:
      break;
  }
  return "-";
}

CardTime least_time(const LaunchCost& launch, const CardLimits& card) {
  const auto blocks = static_cast<double>(std::max<std::int64_t>(launch.blocks, 1));  // a library's have none
  const double share = std::min(1.0, blocks / static_cast<double>(card.multiprocessors));
  const double wavefronts = static_cast<double>(launch.shared_reads.wavefronts + launch.shared_writes.wavefronts) +
                            global_wavefronts(launch.reads) + global_wavefronts(launch.writes);
  CardTime time;
  const auto take = [&time](CardTime::Bound bound, double seconds) {
    if (seconds > time.seconds) time = {seconds, bound};
  };
  take(CardTime::Bound::memory, static_cast<double>(launch.memory_bytes()) / card.bytes_per_second);
  take(CardTime::Bound::l1, wavefronts / (share * card.multiprocessors * card.clock));
  take(CardTime::Bound::issue, launch.instructions / (kIssuedAClock * share * card.multiprocessors * card.clock));
  take(CardTime::Bound::mma, kFlopsPerMma * static_cast<double>(launch.mma) / (share * card.bf16_flops_per_second));
  take(CardTime::Bound::exponentials,
       static_cast<double>(launch.exponentials) / (share * card.exponentials_per_second()));
  take(CardTime::Bound::product,
       launch.product_flops / card.f32_flops_per_second + launch.bf16_product_flops / card.bf16_flops_per_second);
  return time;
}

}  // namespace engram
