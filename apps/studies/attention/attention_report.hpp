#pragma once
/// What `engram attention` says of a model of the all-attention family: where all heads look, and the weights of one,
/// with a picture like figure 3 of Sukhbaatar et al.: "Augmenting Self-attention with Persistent Memory" (2019).

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/attention/attention_study.hpp"
#include "apps/studies/attention/read_tokens.hpp"

namespace engram {

struct AttentionReport {
  std::vector<HeadAttention> heads;
  StudiedHead studied;
  std::vector<AttentionRow> rows;  ///< of the studied head
  std::vector<SlotUse> slots;      ///< likewise, those that it uses most
  ReadTokens tokens;
};

/// A line for every head; then the slots of the studied one and the tokens that excite them.
std::string table_of(const AttentionReport& report);
/// Lines `position,token,kind,index,weight` of the studied head: kind "context" with the distance as index, or "slot".
/// Weights of 0 are left out.
std::string csv_of(const AttentionReport& report);
nlohmann::json json_of(const AttentionReport& report);
/// A heat map of the studied head: a row for each query, columns for distances from the farthest to 1, a divider, then
/// the slots. Wide maps show the largest weight of neighbouring columns in one cell. Throws UsageError where the
/// queries see nothing.
std::string svg_of(const AttentionReport& report);

}  // namespace engram
