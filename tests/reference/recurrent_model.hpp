#pragma once
/// Executable definition of a recurrent language model of several layers without readout: one text, word by word, from
/// nothing. [key-value-predict 1.0, 1.2, 1.9, 1.10].

#include <cstdint>
#include <vector>

#include "tests/reference/adaptive_tokens.hpp"
#include "tests/reference/array64.hpp"

namespace engram::reference {

/// Of an LSTM, or, where `recurrent` is not given, of a quasi-recurrent layer.
struct EncoderWeights {
  Array64 input;      // [4k, w], blocks i, f, g, o; [3k, taps w], blocks z, f, o, columns of the present input first
  Array64 recurrent;  // [4k, k]
  Array64 bias;       // [4k]; [3k]
};

struct RecurrentLanguageModel {
  AdaptiveTokens ends;  // whose vectors are taken without their factor
  std::vector<EncoderWeights> layers;

  /// -ln p of each target after the inputs up to its position.
  std::vector<double> losses(const std::vector<std::int64_t>& inputs, const std::vector<std::int64_t>& targets) const;
};

}  // namespace engram::reference
