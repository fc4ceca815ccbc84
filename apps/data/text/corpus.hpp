#pragma once
/// A text and its three splits, as bytes. The rules are those of the papers' data sets (docs/guide/all-attention.md,
/// data, and [transformer-xl 6.1] for newlines that are dropped):
///
///   enwik8  a token is a byte and newline is the end token; a split that does not end in one gets one more token
///   text8   a-z and space only; spaces at both ends of a split are dropped, one end token is added to each split
///   any     as enwik8, with the user's percentages
///
/// enwik8 and text8 are cut at 90,000,000 and 95,000,000 of their 100,000,000 bytes; files of another size in the same
/// proportion, which is noted. Splits are cut at bytes, not at lines: that is what the published numbers were made
/// with.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/names.hpp"

namespace engram::data {

enum class TextRule : std::uint8_t { enwik8, text8, any };
constexpr auto names_of(TextRule) {
  return std::to_array<Named<TextRule>>(
      {{TextRule::enwik8, "enwik8"}, {TextRule::text8, "text8"}, {TextRule::any, "any"}});
}
/// The inverse of name_of; throws UsageError on any other text.
TextRule parse_text_rule(std::string_view name);

/// A byte for people: 'a' (0x61), or 0x07 if it cannot be printed.
std::string byte_text(char byte);

inline constexpr std::array<std::string_view, 3> kSplitNames{"train", "valid", "test"};

/// Shares of train, valid and test in percent: each above 0, together 100.
using Percentages = std::array<double, 3>;
inline constexpr Percentages kUsualPercentages{90, 5, 5};
/// Reads "90,5,5"; throws UsageError unless it is three positive numbers with the sum 100.
Percentages parse_percentages(std::string_view list);

/// Throws UsageError unless they are as Percentages says.
void require_valid(const Percentages& percentages);
/// Where `total` bytes are cut into three: [0, train's end, valid's end, total], rounded down.
std::array<std::int64_t, 4> cuts_of(std::int64_t total, const Percentages& percentages);

struct Source {
  std::string name;  ///< the path as the user gave it
  std::string bytes;
};
/// Throws FileError for an empty one.
void require_contents(const Source& source);

/// One split. Its tokens are the bytes of `text` (but newlines, where the corpus drops them), then one end token if
/// `end_appended`.
struct Split {
  std::string_view text;
  bool end_appended = false;
  std::size_t source = 0;       ///< index in Corpus::sources
  std::int64_t first_byte = 0;  ///< where `text` begins in its source
  std::int64_t stripped = 0;    ///< spaces dropped at both ends (text8)
  std::int64_t newlines = 0;    ///< in `text`, if they are no tokens
  std::int64_t token_count() const {
    return static_cast<std::int64_t>(text.size()) - newlines + (end_appended ? 1 : 0);
  }
};

/// Owns the sources that its splits point into; movable, not copyable.
struct Corpus {
  Corpus() = default;
  Corpus(Corpus&&) = default;
  Corpus& operator=(Corpus&&) = default;
  Corpus(const Corpus&) = delete;

  TextRule rule = TextRule::any;
  bool drop_newlines = false;  ///< no newline is a token, neither one of the text nor one at the end of a split
  std::vector<Source> sources;
  std::array<Split, 3> splits;     ///< in the order of kSplitNames
  std::vector<std::string> notes;  ///< what the user should be told, one sentence each
};

/// Cuts one text into three. `exact_bytes` never adds an end token (enwik8 and any only); `drop_newlines` leaves out
/// those of the text as well. Percentages are given for `any`; for the other rules none, or exactly 90,5,5.
/// Throws UsageError for options that exclude each other; FileError for an empty text, a single line (unless
/// exact_bytes or text8), a byte that text8 cannot have, and a split of fewer than two tokens.
Corpus split_text(Source source, TextRule rule, const std::optional<Percentages>& percentages, bool exact_bytes,
                  bool drop_newlines = false);

/// Takes each split from a file of its own, train, valid, test in this order. Throws as split_text.
Corpus splits_of_files(std::array<Source, 3> sources, TextRule rule, bool exact_bytes, bool drop_newlines = false);

}  // namespace engram::data
