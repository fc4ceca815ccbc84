#include "core/device_ranks.hpp"

#include <array>

namespace engram {
namespace {

// Filled before main by static initialisers, constant afterwards.
std::array<DeviceRanksFactory, kDeviceKinds>& device_ranks_factories() {
  static std::array<DeviceRanksFactory, kDeviceKinds> table{};
  return table;
}

}  // namespace

bool register_device_ranks(DeviceKind kind, DeviceRanksFactory factory) {
  device_ranks_factories()[static_cast<std::size_t>(kind)] = factory;
  return true;
}

std::unique_ptr<Communicator> make_device_ranks(Communicator& host, Backend& backend) {
  const DeviceRanksFactory factory = device_ranks_factories()[static_cast<std::size_t>(backend.device().kind)];
  return factory == nullptr ? nullptr : factory(host, backend);
}

std::unique_ptr<Communicator> open_device_ranks(Communicator& host, Backend& backend) {
  if (host.alone() || backend.shares_host_memory()) return nullptr;
  if (std::unique_ptr<Communicator> ranks = make_device_ranks(host, backend)) return ranks;
  throw NotAvailable(text("ranks: device ", backend.device(),
                          " must have a library that carries its memory, this build ", "has none, got ", host.size(),
                          " ranks",
                          "\n  for cuda that is NCCL (packages libnccl-dev and libnccl2): install it and build again"));
}

}  // namespace engram
