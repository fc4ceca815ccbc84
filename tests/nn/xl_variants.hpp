#pragma once
/// One small model of every kind of the Transformer-XL family, for tests.

#include <string>
#include <vector>

#include "nn/models/transformer_xl_options.hpp"

namespace engram::harness {

/// One layer of two heads, five words, a memory of four positions where the kind may have one.
inline TransformerXlOptions small_xl(PositionKind positions) {
  TransformerXlOptions options;
  options.vocabulary = 5;
  options.layers = 1;
  options.width = 4;
  options.heads = 2;
  options.depth = positions == PositionKind::absolute_learned ? 2 : 3;
  options.inner = 5;
  options.positions = positions;
  if (positions == PositionKind::shaw) options.position_rows = 6;
  if (positions == PositionKind::absolute_learned) options.position_rows = 9;
  const bool absolute = positions == PositionKind::absolute_sinusoidal || positions == PositionKind::absolute_learned;
  options.memory = absolute ? 0 : 4;
  return options;
}

struct XlVariant {
  std::string name;
  TransformerXlOptions options;
};

/// Two layers each: every kind of positions with either place of the norms, tied and own biases of queries, and for
/// relative positions both starts of the memory and windows of one length.
inline std::vector<XlVariant> xl_variants() {
  std::vector<XlVariant> all;
  for (const bool pre_norm : {false, true}) {
    const std::string norm = pre_norm ? ", pre-norm" : ", post-norm";
    const auto put = [&](const std::string& name, TransformerXlOptions options) {
      options.layers = 2;
      options.pre_norm = pre_norm;
      all.push_back({name + norm, options});
    };
    TransformerXlOptions options = small_xl(PositionKind::relative);
    put("relative, tied", options);
    options.tie_position_biases = false;
    put("relative, own biases", options);
    options.memory_start = MemoryStart::zeros;
    options.clamp = 3;
    put("relative, zeros", options);
    options.visibility = Visibility::last_memory;
    put("relative, zeros, last_memory", options);
    options = small_xl(PositionKind::shaw);
    put("shaw ab", options);
    options.shaw_terms = ShawTerms::abcd;
    put("shaw abcd", options);
    put("absolute sinusoidal", small_xl(PositionKind::absolute_sinusoidal));
    put("absolute learned", small_xl(PositionKind::absolute_learned));
  }
  return all;
}

}  // namespace engram::harness
