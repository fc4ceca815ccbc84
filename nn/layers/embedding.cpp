#include "nn/layers/embedding.hpp"

#include "autograd/functions/embedding.hpp"
#include "autograd/tape.hpp"
#include "nn/init.hpp"

namespace engram {

Embedding::Embedding(std::int64_t symbols, std::int64_t width) : weight_({symbols, width}, init::standard_normal()) {}

Variable Embedding::forward(Tape& tape, const Tensor& index) { return embedding(tape.parameter(weight_), index); }

void Embedding::visit(Visitor& visit) { visit("weight", weight_); }

}  // namespace engram
