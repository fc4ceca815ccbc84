#pragma once
/// Executable definition of the Transformer of the paper on product-key memory, forward, one window, number by number:
/// [product-key 1.6, 5.2].

#include <cstdint>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

struct HostMap {
  Array64 weight, bias;  // [out, in], [out]
};
struct HostNorm {
  Array64 gain, bias;  // [d]
};

struct HostLayer {
  HostMap query, key, value, output;  // [d, d]
  HostNorm attention_norm;            // LN1
  HostMap inner, outer;               // [F, d], [d, F]
  HostNorm forward_norm;              // LN2
};

struct HostTransformer {
  std::int64_t heads = 1;
  bool gelu = true;  // else relu
  bool pre_norm = false;
  double epsilon = 1e-12;
  Array64 table;      // of input and output, [V, d]
  Array64 positions;  // [P, d]
  HostNorm embedding_norm;
  std::vector<HostLayer> layers;
  HostNorm output_norm;  // pre_norm
  Array64 output_bias;   // [V]
};

/// ln p of every word after every token of a window: [M, V]. `weights`: gets the attention weights of every layer,
/// [heads, M, M], the query first; 0 behind it.
Array64 host_log_probabilities(const HostTransformer& model, const std::vector<std::int64_t>& tokens,
                               std::vector<Array64>* weights = nullptr);

}  // namespace engram::reference
