#pragma once
/// The memory of the device that is reserved just now, and which reservation an address lies in: a captured step is
/// void when memory that it uses was given back, even where other memory has come to lie there.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace engram::simulated {

class Reservations {
 public:
  void add(const void* data, std::size_t bytes);
  /// Of what add() was called with; nullptr is nothing. Returns its bytes.
  std::size_t remove(const void* data);
  std::size_t bytes() const { return bytes_; }
  /// The number of the reservation that holds the address, 1, 2, ...; 0: none does.
  std::uint64_t holder(std::uintptr_t address) const;

 private:
  struct Reservation {
    std::size_t bytes;
    std::uint64_t number;
  };
  std::map<std::uintptr_t, Reservation> all_;  // by their first address
  std::size_t bytes_ = 0;
  std::uint64_t last_number_ = 0;
};

/// The addresses of device memory among the arguments of captured work, and what they were addresses of.
class CapturedAddresses {
 public:
  /// Every aligned word of the arguments that lies in a reservation is taken for an address.
  CapturedAddresses(const Reservations& reservations, std::span<const std::byte> arguments);
  /// What is wrong when the work is done again; empty: nothing.
  std::string mistake(const Reservations& reservations) const;

 private:
  struct Address {
    std::uintptr_t address;
    std::uint64_t holder;
  };
  std::vector<Address> addresses_;
};

}  // namespace engram::simulated
