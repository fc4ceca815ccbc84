#pragma once
/// The adaptive span's rules: the soft mask ([all-attention 1.6], adaptive span paper eq. 5), how many positions a
/// layer must compute and cache ([all-attention 1.7]), and the loss that shortens spans. `span` is zeta in [0, 1], a
/// fraction of `span_length` S positions; the ramp R is in positions. Surprising: the mask counts distances from zero,
/// so the previous token (distance 1) has x = 0.

#include <cstdint>
#include <vector>

namespace engram::reference {

/// (R + S zeta - x) / R before clamping, x = distance - 1 + mask_offset. Distance 1 is the previous token; mask_offset
/// 0 is the released code's rule, 1 the paper's.
double raw_span_mask(std::int64_t distance, double span, std::int64_t span_length, double ramp,
                     std::int64_t mask_offset = 0);

/// raw_span_mask clamped to [0, 1]: the factor m on the exponential of a context slot.
double span_mask(std::int64_t distance, double span, std::int64_t span_length, double ramp,
                 std::int64_t mask_offset = 0);

struct SpanWindow {
  std::int64_t size;    // positions with a weight, of the head that sees farthest
  std::int64_t trim;    // positions not computed, a multiple of 64
  std::int64_t window;  // S_eff: positions computed
  std::int64_t cache;   // C': positions kept for the next block
};
/// The layer's rule over the spans of its heads.
SpanWindow span_window(const std::vector<double>& spans, std::int64_t span_length, std::int64_t ramp);

/// lambda S times the sum over layers of the mean over heads; spans[layer][head].
double span_loss(double lambda, std::int64_t span_length, const std::vector<std::vector<double>>& spans);

}  // namespace engram::reference
