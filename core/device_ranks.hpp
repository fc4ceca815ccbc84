#pragma once
/// What carries a device's memory to other ranks. Folders of devices with memory of their own register it when the
/// program starts; nothing includes it.

#include <memory>

#include "core/backend.hpp"
#include "core/communicator.hpp"

namespace engram {

/// Makes a communicator for memory of `backend`, with the ranks of `host`, over which it says everything that lies on
/// the host. Both must outlive it. Collective: where it throws on one rank, it throws on all.
using DeviceRanksFactory = std::unique_ptr<Communicator> (*)(Communicator& host, Backend& backend);

/// Called by static initialisers of the device folders; returns true.
bool register_device_ranks(DeviceKind kind, DeviceRanksFactory factory);

/// What the device's factory makes, for one rank as well; nullptr where this build has none. Throws what that throws.
std::unique_ptr<Communicator> make_device_ranks(Communicator& host, Backend& backend);

/// The communicator for memory of this device. nullptr: `host` serves, because it is one rank, or because the device's
/// memory is the host's. Throws NotAvailable where this build has no library for it; else what the factory throws.
std::unique_ptr<Communicator> open_device_ranks(Communicator& host, Backend& backend);

}  // namespace engram
