#pragma once
/// The losses of a block's targets on the host.

#include <vector>

#include "autograd/variable.hpp"
#include "core/backend.hpp"
#include "nn/layers/token_io.hpp"

namespace engram {

/// Of every target of the batch, in nats, in their order. hidden: [B, M', d], of the positions that have targets.
/// Waits for the device.
std::vector<double> target_losses(TokenIo& tokens, const Variable& hidden, const TokenBatch& batch, Backend& backend);

}  // namespace engram
