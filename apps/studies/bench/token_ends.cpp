#include "apps/studies/bench/token_ends.hpp"

#include <utility>

#include "autograd/tape.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

constexpr std::uint64_t kEndsSeed = 1;

}  // namespace

TokenEnds::TokenEnds(TokenIo& io, Runtime& runtime) : io_(&io), runtime_(&runtime) {
  collect(*this, store_);
  store_.place(runtime.backend(), DType::f32, kEndsSeed);
}

void TokenEnds::take(std::span<const std::int32_t> words) {
  block_.write({.inputs = words.first(words.size() - 1),
                .targets = words.subspan(1),
                .length = static_cast<std::int64_t>(words.size()) - 1},
               1, io_->clusters(), runtime_->backend(), runtime_->memory());
}

double TokenEnds::train() {
  return runtime_->in_step([this](Step& step) { return seconds_of(*runtime_, [&] { train_once(step); }); });
}

void TokenEnds::visit(Visitor& visit) {
  visit("embedding", io_->input());
  visit("output", io_->output());
}

void TokenEnds::train_once(Step& step) {
  store_.zero_gradients(step);
  Tape tape(step);
  const TokenBatch batch = block_.piece(0);
  std::pmr::vector<Variable> losses(step.objects());
  const double row_weight = 1.0 / static_cast<double>(batch.inputs.count());
  for (LossPart& part : io_->losses(io_->embed(tape, batch), batch, row_weight)) losses.push_back(std::move(part.loss));
  tape.backward(losses);
}

}  // namespace engram
