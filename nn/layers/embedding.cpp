#include "nn/layers/embedding.hpp"

#include "autograd/functions/embedding.hpp"
#include "autograd/tape.hpp"

namespace engram {

Embedding::Embedding(std::int64_t symbols, std::int64_t width, const Initializer& start)
    : weight_({symbols, width}, start) {}

Variable Embedding::forward(Tape& tape, const Tensor& index) { return embedding(tape.parameter(weight_), index); }

void Embedding::visit(Visitor& visit) { visit("weight", weight_); }

}  // namespace engram
