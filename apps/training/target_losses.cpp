#include "apps/run/model/target_losses.hpp"

namespace engram {

std::vector<double> target_losses(TokenIo& tokens, const Variable& hidden, const TokenBatch& batch, DType dtype,
                                  Backend& backend) {
  std::vector<double> losses(static_cast<std::size_t>(batch.targets.count()));
  for (const LossPart& part : tokens.losses(hidden, batch, 1))
    dispatch_float(dtype, "evaluate", [&]<class T>() {
      std::vector<T> host(static_cast<std::size_t>(part.row_loss.count()));
      backend.copy(host.data(), part.row_loss.raw(), part.row_loss.bytes(), CopyKind::device_to_host);
      const std::size_t rows = part.rows ? part.rows->size() : host.size();
      for (std::size_t i = 0; i < rows; ++i)
        losses[part.rows ? static_cast<std::size_t>((*part.rows)[i]) : i] += static_cast<double>(host[i]);
    });
  return losses;
}

}  // namespace engram
