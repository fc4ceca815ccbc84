/// What the device `cuda` carries its memory to other ranks by: in builds that have NCCL's header.

#include "core/device_ranks.hpp"
#include "cuda/card/backend.hpp"
#include "cuda/card/nccl_communicator.hpp"

namespace engram::card {
namespace {

std::unique_ptr<Communicator> open_nccl_ranks(Communicator& host, Backend& backend) {
  CardBackend& card = card_of(backend);
  together(host, [] { (void)nccl(); });
  return std::make_unique<NcclCommunicator>(host, nccl(), card.stream(), card.waiting());
}

const bool ranks_registered = register_device_ranks(DeviceKind::cuda, &open_nccl_ranks);

}  // namespace
}  // namespace engram::card
