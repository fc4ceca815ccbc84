#pragma once
/// Parameters of a model by what they are for, counted from its visit() alone: no memory is taken. [all-attention 6].

#include <array>
#include <cstdint>
#include <string_view>

#include "nn/module.hpp"

namespace engram {

enum class ParameterRole : std::uint8_t {
  embeddings,  ///< for a vocabulary in clusters, E_i
  positions,   ///< u, shared by all heads and layers; Transformer-XL: biases of queries, tables of learned positions
  attention,   ///< W_q, W_k, W_v, W_o
  persistent,  ///< K', V'
  feed_forward,
  layer_norm,
  spans,  ///< zeta
  output,
  projections,    ///< clusters: P_i, of input and output
  cluster_head,   ///< clusters: W_cl, b_cl
  output_biases,  ///< clusters: b_i
  memory_values,  ///< product-key memories: V
  memory_keys,    ///< C1, C2
  memory_query,   ///< the query network with its norms
  memory_output,  ///< gate and projection
  encoder,        ///< recurrent models: what makes states of words
  readout         ///< recurrent models: what is made of states before the softmax
};
inline constexpr std::array<std::string_view, 17> kParameterRoles{
    "embeddings",  "positions",    "attention",     "persistent",   "feed_forward",  "layer_norm",
    "spans",       "output",       "projections",   "cluster_head", "output_biases", "memory_values",
    "memory_keys", "memory_query", "memory_output", "encoder",      "readout"};

struct ParameterCount {
  std::array<std::int64_t, kParameterRoles.size()> by_role{};  ///< indexed by ParameterRole
  std::int64_t tensors = 0;
  std::int64_t total = 0;

  std::int64_t of(ParameterRole role) const { return by_role[static_cast<std::size_t>(role)]; }
};

/// Buffers, which are not trained, do not count, and what several modules share counts once. Throws Error for a
/// parameter whose name belongs to no role, UsageError for more than Shape::kMostElements.
ParameterCount count_parameters(Module& model);

}  // namespace engram
