#include "cuda/simulated/reservations.hpp"

#include <cstring>

#include "core/error.hpp"

namespace engram::simulated {

void Reservations::add(const void* data, std::size_t bytes) {
  all_[reinterpret_cast<std::uintptr_t>(data)] = {bytes, ++last_number_};
  bytes_ += bytes;
}

std::size_t Reservations::remove(const void* data) {
  if (data == nullptr) return 0;
  const auto found = all_.find(reinterpret_cast<std::uintptr_t>(data));
  const std::size_t bytes = found->second.bytes;
  bytes_ -= bytes;
  all_.erase(found);
  return bytes;
}

std::uint64_t Reservations::holder(std::uintptr_t address) const {
  auto after = all_.upper_bound(address);
  if (after == all_.begin()) return 0;
  const auto& [first, reservation] = *--after;
  return address - first < reservation.bytes ? reservation.number : 0;
}

CapturedAddresses::CapturedAddresses(const Reservations& reservations, std::span<const std::byte> arguments) {
  for (std::size_t at = 0; at + sizeof(std::uintptr_t) <= arguments.size(); at += sizeof(std::uintptr_t)) {
    std::uintptr_t word = 0;
    std::memcpy(&word, arguments.data() + at, sizeof word);
    if (const std::uint64_t holder = reservations.holder(word); holder != 0) addresses_.push_back({word, holder});
  }
}

std::string CapturedAddresses::mistake(const Reservations& reservations) const {
  for (const Address& one : addresses_)
    if (const std::uint64_t now = reservations.holder(one.address); now != one.holder)
      return text("a captured step must find its memory as it was, got an address whose memory was given back",
                  now == 0 ? "" : " and is other memory now");
  return {};
}

}  // namespace engram::simulated
