#pragma once
/// A text that was read, token by token, as people can see it.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram {

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

}  // namespace engram
