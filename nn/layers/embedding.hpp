#pragma once

#include "autograd/variable.hpp"
#include "nn/init.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// A plain table of vectors, one per symbol; entries start N(0, 1) unless said otherwise, no scaling.
class Embedding final : public Module {
 public:
  Embedding(std::int64_t symbols, std::int64_t width, const Initializer& start = init::standard_normal());
  /// index: [...] i32 in [0, symbols) -> [..., width].
  Variable forward(Tape& tape, const Tensor& index);
  void visit(Visitor& visit) override;

 private:
  Parameter weight_;  // [symbols, width]
};

}  // namespace engram
