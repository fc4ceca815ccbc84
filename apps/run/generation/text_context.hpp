#pragma once
/// A place in a text that there is already, from which a model writes on: tokens that it reads first, and how the text
/// itself goes on.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config.hpp"

namespace engram {

struct TextContext {
  std::vector<std::int32_t> tokens;     ///< what is read, at least one
  std::vector<std::int32_t> reference;  ///< what follows in the text
  std::size_t forgotten = 0;  ///< of `tokens`, the first: a model that reads article by article has forgotten them
  std::int32_t start = -1;    ///< what the model reads before the tokens that it has not forgotten; -1: nothing
  std::string place;          ///< in words: "512 tokens of test, from 0 on"
};

/// Which part of a split or text.
struct ContextPlace {
  std::string split = "valid";
  std::optional<std::int64_t> at;       ///< the first token, from 0 on
  std::optional<std::int64_t> article;  ///< or the article that it begins, from 0 on; none of both: 0
  std::optional<std::int64_t> length;   ///< tokens at most; none: kUsualContext of a split, all of a text
  std::int64_t reference = 0;           ///< tokens that follow, at most
};
inline constexpr std::int64_t kUsualContext = 512;

/// A part of a split, of an article at most to its end. A model that begins every article with nothing remembered reads
/// no more than what is behind the last beginning of one. Throws UsageError for a place that there is not.
TextContext context_of(const data::DataSet& data, const ContextPlace& place, const RunConfig& config);
/// A part of a text that was read; `name` is what messages call it.
TextContext context_of(const std::vector<std::int32_t>& text, std::string_view name, const ContextPlace& place);

}  // namespace engram
