#pragma once
/// The losses of a block's targets on the host.

#include <vector>

#include "autograd/variable.hpp"
#include "core/backend.hpp"
#include "core/dtype.hpp"
#include "nn/layers/token_io.hpp"

namespace engram {

/// Of every target of the batch, in nats, in their order. hidden: [B, M', d], of the positions that have targets;
/// dtype: of the losses. Waits for the device.
std::vector<double> target_losses(TokenIo& tokens, const Variable& hidden, const TokenBatch& batch, DType dtype,
                                  Backend& backend);

}  // namespace engram
