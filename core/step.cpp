#include "core/step.hpp"

#include "core/error.hpp"

namespace engram {

Step::Step(Backend& backend, Allocator& memory, std::uint64_t seed)
    : backend_(&backend), memory_(&memory), computes_(backend.computes()), seed_(seed), wrong_ids_(backend) {
  begin({});
  is_begun_ = false;
}

Step::~Step() { backend_->release(all_scalars_); }

void Step::write_scalars(std::span<const StepScalars> of_pieces) {
  if (of_pieces.size() > pieces_) {
    void* const more = backend_->reserve(of_pieces.size_bytes());
    if (all_scalars_ != nullptr) backend_->release(all_scalars_);
    all_scalars_ = static_cast<StepScalars*>(more);
    pieces_ = of_pieces.size();
  }
  on_host_.assign(of_pieces.begin(), of_pieces.end());
  backend_->copy(all_scalars_, of_pieces.data(), of_pieces.size_bytes(), CopyKind::host_to_device);
}

void Step::begin_piece(std::size_t piece) {
  if (piece >= on_host_.size())
    throw Error(text("step: has scalars for ", on_host_.size(), " pieces, got piece ", piece));
  scalars_ = all_scalars_ + piece;
  piece_ = piece;
  is_begun_ = true;
  next_operation_ = 0;
}

void Step::begin(const StepScalars& scalars) {
  write_scalars({&scalars, 1});
  begin_piece(0);
}

void Step::set_activations(ActivationPrecision precision) {
  if (precision == ActivationPrecision::bf16 && !backend_->stores_bf16())
    throw NotAvailable(text("step: bf16 activations need a device whose kernels take them, got ", device(),
                            "\n  products alone can be rounded to bf16 on every device"));
  activations_ = precision;
}

void Step::count_plain_attention(const std::string& reason) {
  ++plain_attention_calls_;
  plain_attention_reason_ = reason;
}

}  // namespace engram
