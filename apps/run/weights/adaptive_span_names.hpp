#pragma once
/// The tensors of the released program of adaptive spans and persistent memory, and the parameters of an
/// AllAttentionModel that they hold ([all-attention 1]). Both store linear maps [out, in].

#include <cstdint>
#include <string>
#include <vector>

#include "apps/run/weights/foreign_layout.hpp"
#include "apps/run/weights/foreign_tensor.hpp"
#include "nn/models/all_attention_options.hpp"

namespace engram {

/// How a tensor's elements lie in its parameter.
enum class AdaptiveSpanView : std::uint8_t {
  same,       ///< as they are
  spans,      ///< [H, 1, 1] as [H]
  positions,  ///< [1, D, S], the most distant position first, as [S, D], the nearest first
  keys        ///< [H, D, N] as [H, N, D]
};

struct AdaptiveSpanTensor {
  ForeignLayoutTensor stored;
  std::string parameter;  ///< of the model; empty: the tensor repeats another one
  AdaptiveSpanView view = AdaptiveSpanView::same;
};

/// All tensors of a model with these options, which must be valid, tied copies after what they repeat.
std::vector<AdaptiveSpanTensor> adaptive_span_tensors(const AllAttentionOptions& options);
/// Buffers of the masks, which are computed.
bool is_adaptive_span_buffer(const std::string& name);
/// The buffer that stands beside a tensor; empty: none does.
std::string adaptive_span_buffer(const std::string& name);
/// The tensor of the file as its parameter has it.
ForeignTensor seen_as(AdaptiveSpanView view, const ForeignTensor& stored);
/// The parameter's elements in the order in which the tensor of the file has them; axes of size 1 are left out.
ForeignTensor stored_as(AdaptiveSpanView view, const ForeignTensor& parameter);

}  // namespace engram
