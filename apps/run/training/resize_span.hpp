#pragma once
/// Continuing a run with another longest span. [all-attention 11]: the relative positions of
/// the nearest distances are kept, and every head keeps its span in positions: zeta' = min(1, zeta S / S').

#include <cstdint>
#include <vector>

#include "core/allocator.hpp"
#include "core/backend.hpp"
#include "nn/checkpoint.hpp"

namespace engram {

class SpanResize {
 public:
  /// From a checkpoint with S = `from` to a session with S' = `to`.
  SpanResize(std::int64_t from, std::int64_t to, Backend& backend, Allocator& allocator)
      : from_(from), to_(to), backend_(&backend), allocator_(&allocator) {}

  /// Before loading: puts memory of the file's shape in the place of the tables of positions and of their optimiser
  /// state. Rows of distances that the file does not have keep what the session holds.
  void prepare(std::vector<NamedTensor>& wanted);
  /// After loading: fills the session's tensors.
  void finish();

 private:
  struct Table {
    Tensor stored, wanted;  // [S, D] and [S', D]
  };
  struct Span {
    Tensor tensor;  // zeta, or optimiser state of it, [H]
    double factor;
    bool is_share;  // zeta itself, at most 1
  };

  std::int64_t from_, to_;
  Backend* backend_;
  Allocator* allocator_;
  std::vector<Table> tables_;
  std::vector<Span> spans_;
};

}  // namespace engram
