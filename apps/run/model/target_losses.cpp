#include "apps/run/model/target_losses.hpp"
#include "core/host_copy.hpp"

namespace engram {

std::vector<double> target_losses(TokenIo& tokens, const Variable& hidden, const TokenBatch& batch, Backend& backend) {
  std::vector<double> losses(static_cast<std::size_t>(batch.targets.count()));
  for (const LossPart& part : tokens.losses(hidden, batch, 1)) {
    const std::vector<double> host = host_doubles(backend, part.row_loss);
    const std::size_t rows = part.rows ? part.rows->size() : host.size();
    for (std::size_t i = 0; i < rows; ++i) losses[part.rows ? static_cast<std::size_t>((*part.rows)[i]) : i] += host[i];
  }
  return losses;
}

}  // namespace engram
