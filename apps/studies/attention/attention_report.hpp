#pragma once
/// The weights of one head for people: as a table for other programs, and as a picture like figure 3 of Sukhbaatar et
/// al.: "Augmenting Self-attention with Persistent Memory" (2019).

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/vocabulary/vocabulary.hpp"
#include "apps/studies/attention/attention_study.hpp"

namespace engram {

/// The text that was read.
class ReadTokens {
 public:
  ReadTokens(const std::vector<std::int32_t>& tokens, const data::Vocabulary& vocabulary);
  std::int64_t size() const { return std::ssize(tokens_); }
  /// A token, what cannot be printed in a visible form.
  const std::string& token(std::int64_t position) const { return tokens_[static_cast<std::size_t>(position)]; }
  /// The token between brackets, with some text before it.
  std::string around(std::int64_t position) const;

 private:
  std::vector<std::string> tokens_;
  bool words_;
};

/// Lines `position,token,kind,index,weight`: kind "context" with the distance as index, or "slot". Weights of 0 are
/// left out.
std::string attention_csv(const std::vector<AttentionRow>& rows, const ReadTokens& tokens);
/// A heat map: a row for each query, columns for distances from the farthest to 1, a divider, then the slots. Wide maps
/// show the largest weight of neighbouring columns in one cell.
std::string attention_svg(const std::vector<AttentionRow>& rows, const ReadTokens& tokens, std::string_view head);

}  // namespace engram
