#pragma once
/// What one new token costs in evaluation at an attention length A: of a vanilla Transformer that reads a window of A
/// tokens again for every token, and of a Transformer-XL that remembers A positions. Dai et al.: "Transformer-XL:
/// Attentive Language Models Beyond a Fixed-Length Context" (2019), table 9; [transformer-xl 6.7]. FLOPs of
/// one layer, a multiply-add being 2, with heads that are together as wide as the model; embedding and output are
/// left out, as are the causal savings of Transformer-XL.

#include <cstdint>
#include <optional>

namespace engram {

struct LayerSizes {
  std::int64_t width = 0;  ///< D
  std::int64_t inner = 0;  ///< F
};

/// Scores of keys that a query must not see.
enum class FutureKeys : std::uint8_t {
  computed,  ///< and hidden, as a plain matrix product does
  skipped
};

/// A (8 D^2 + 4 D F) + 4 A^2 D, or 2 A^2 D where future keys are skipped.
double sliding_window_flops(const LayerSizes& layer, std::int64_t attention_length, FutureKeys future);
/// 8 D^2 K / S + 2 D^2 + 4 D F + 6 K D with K = A + S: segments of S tokens, queries, keys, values and positions of the
/// memory projected again with every segment, as the released programs do.
double released_xl_flops(const LayerSizes& layer, std::int64_t attention_length, std::int64_t segment);
/// 8 D^2 + 4 D F + 6 A D: nothing is projected twice.
double cached_xl_flops(const LayerSizes& layer, std::int64_t attention_length);

/// The paper's slowdown of the vanilla model on one GPU, where table 9 has that attention length.
std::optional<double> published_slowdown(std::int64_t attention_length);

}  // namespace engram
