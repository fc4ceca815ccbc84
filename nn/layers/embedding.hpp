#pragma once

#include "autograd/variable.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// A plain table of vectors, one per symbol; entries start N(0, 1), no scaling.
class Embedding final : public Module {
 public:
  Embedding(std::int64_t symbols, std::int64_t width);
  /// index: [...] i32 in [0, symbols) -> [..., width].
  Variable forward(Tape& tape, const Tensor& index);
  void visit(Visitor& visit) override;

 private:
  Parameter weight_;  // [symbols, width]
};

}  // namespace engram
