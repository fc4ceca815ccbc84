#pragma once
/// Executable definition of Transformer-XL and its vanilla baselines, forward, one stream, number by number:
/// [transformer-xl 1, 3, 12]. Letters are those of its section 0.

#include <cstdint>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

enum class XlPositions : std::uint8_t { relative, shaw_ab, shaw_abcd, sinusoidal, learned };
enum class XlVisibility : std::uint8_t { all, last_memory, last_memory_plus_1 };

/// What a model is beside its numbers.
struct XlRules {
  XlPositions positions = XlPositions::relative;
  XlVisibility visibility = XlVisibility::all;
  std::int64_t heads = 1, depth = 1;  // H, dh
  std::int64_t memory = 0;            // mem_len
  bool zeros = false;                 // mem_init
  std::int64_t clamp = 0;             // clamp_len; 0: off
  bool pre_norm = false;
  bool reversed = false;  // order of the clusters' slots
  double epsilon = 1e-5;
};

struct XlLayer {
  Array64 query, key, value, output;             // Wq, Wk, Wv [a, D]; Wo [D, a]
  Array64 position;                              // WR [a, D]
  Array64 content_bias, position_bias;           // u, v [a]
  Array64 distance_keys;                         // e [Lmax, a]
  Array64 distance_biases;                       // s [Lmax, H]
  Array64 positions;                             // T [Lmax, D]
  Array64 attention_gain, attention_bias;        // LN1 [D]
  Array64 inner, inner_bias, outer, outer_bias;  // W1 [F, D], b1, W2 [D, F], b2
  Array64 forward_gain, forward_bias;            // LN2
};

struct TransformerXl {
  XlRules rules;
  std::vector<std::int64_t> cutoffs;
  std::vector<Array64> tables;           // table_b of the input, one per bin
  std::vector<Array64> projections;      // P_b [D, E_b]; not given: none
  std::vector<Array64> out_tables;       // W_b
  std::vector<Array64> out_projections;  // Q_b
  std::vector<Array64> out_biases;       // b_b
  Array64 cluster_weight, cluster_bias;  // G [nc, E], g [nc]
  std::vector<XlLayer> layers;
};

/// mem_n of every layer, rows of D numbers, oldest first. A default-made one is the start of a stream.
struct XlState {
  bool started = false;
  std::vector<std::vector<std::vector<double>>> memory;
};

/// R_p [D] (1.2).
std::vector<double> xl_sinusoid(double position, std::int64_t width);
/// What is in columns j <= i + M of row i when the rows of X [S, K] are shifted (1.4); 0 elsewhere.
Array64 xl_shift(const Array64& x, std::int64_t memory);
/// Whether distance delta is visible (1.5); `memory`: mem_len.
bool xl_visible(XlVisibility visibility, std::int64_t delta, std::int64_t memory);
/// Where the memory begins and ends in (memory of M rows, block of S rows) after the block (1.7).
struct XlRange {
  std::int64_t begin, end;
};
XlRange xl_memory_range(std::int64_t present, std::int64_t block, std::int64_t extension, std::int64_t memory);

/// Last hidden states [S, D] of a block, whose last `extension` positions are to be fed again; `state` becomes the
/// next.
Array64 xl_hidden(const TransformerXl& model, const std::vector<std::int64_t>& tokens, XlState& state,
                  std::int64_t extension = 0);
/// ln p of every word after every hidden state: [S, V] (section 3).
Array64 xl_log_probabilities(const TransformerXl& model, const Array64& hidden);

}  // namespace engram::reference
