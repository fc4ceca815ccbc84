#include "apps/data/text/corpus.hpp"

#include <fmt/format.h>
#include <optional>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "core/error.hpp"

namespace engram::data {
namespace {

constexpr std::int64_t kPublishedBytes = 100'000'000;
constexpr char kEnd = '\n';

/// Under these rules the end token is learnt from line ends, and one line has none inside.
void require_lines(const Source& source, bool exact_bytes) {
  if (exact_bytes) return;
  const std::size_t first_end = source.bytes.find(kEnd);
  if (first_end != std::string::npos && first_end + 1 < source.bytes.size()) return;
  throw FileError(text("prepare: a training text must have at least two lines, got one line of ", source.bytes.size(),
                       " bytes in '", source.name, "'",
                       "\n  newline is the end token; for a text without lines pass --exact-bytes"));
}

void require_text8(const Source& source) {
  const auto allowed = [](char byte) { return byte == ' ' || (byte >= 'a' && byte <= 'z'); };
  const auto wrong = std::find_if_not(source.bytes.begin(), source.bytes.end(), allowed);
  if (wrong == source.bytes.end()) return;
  throw FileError(text("prepare: text8 must hold only a-z and spaces, got ", byte_text(*wrong), " at byte ",
                       wrong - source.bytes.begin(), " of '", source.name, "'",
                       "\n  use --characters any for other texts"));
}

void strip_spaces(Split& split) {
  const std::size_t before = split.text.size();
  const std::size_t first = std::min(split.text.find_first_not_of(' '), before);
  split.text.remove_prefix(first);
  split.first_byte += static_cast<std::int64_t>(first);
  split.text = split.text.substr(0, split.text.find_last_not_of(' ') + 1);
  split.stripped = static_cast<std::int64_t>(before - split.text.size());
}

/// What the rules do to each split once it has been cut.
void finish(Corpus& corpus, bool exact_bytes) {
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    Split& split = corpus.splits[i];
    if (corpus.rule == TextRule::text8) strip_spaces(split);
    if (corpus.drop_newlines)
      split.newlines = std::count(split.text.begin(), split.text.end(), kEnd);
    else
      split.end_appended = corpus.rule == TextRule::text8 || (!exact_bytes && !split.text.ends_with(kEnd));
    if (split.text.empty() || split.token_count() < 2)
      throw FileError(text("prepare: every split needs at least 2 tokens (an input and a target), got ",
                           split.text.size(), " bytes of text for ", kSplitNames[i], " from '",
                           corpus.sources[split.source].name, "' (", corpus.sources[split.source].bytes.size(),
                           " bytes)\n  give a longer text or other --split percentages"));
  }
}

void check_options(TextRule rule, bool exact_bytes, bool drop_newlines) {
  if (exact_bytes && drop_newlines)
    throw UsageError("prepare: --exact-bytes keeps newlines as they are, got it with --newlines drop");
  if (rule == TextRule::text8 && exact_bytes)
    throw UsageError(
        "prepare: --exact-bytes works with the rules enwik8 and any, got text8, which defines its end token");
}

/// Written so that not-a-number is refused too.
bool are_valid(const Percentages& percentages) {
  double sum = 0;
  for (const double share : percentages) {
    if (!(share > 0)) return false;
    sum += share;
  }
  return std::abs(sum - 100) <= 1e-9;
}

}  // namespace

std::string byte_text(char byte) {
  const auto value = static_cast<unsigned char>(byte);
  return value > 0x20 && value < 0x7f ? fmt::format("'{}' (0x{:02x})", byte, value) : fmt::format("0x{:02x}", value);
}

TextRule parse_text_rule(std::string_view name) {
  const std::optional<TextRule> found = find_named<TextRule>(name);
  if (!found)
    throw UsageError(text("prepare: --characters must be ", choices_text<TextRule>(), ", got '", name,
                          "'\n  --rules names the whole preparation of a published corpus"));
  return *found;
}

Percentages parse_percentages(std::string_view list) {
  const auto reject = [list]() -> UsageError {
    return UsageError(text("prepare: --split must be three positive percentages with the sum 100, got '", list,
                           "'\n  for example --split 90,5,5"));
  };
  const std::string copy(list);
  const char* rest = copy.c_str();
  Percentages percentages{};
  for (std::size_t i = 0; i < percentages.size(); ++i) {
    char* end = nullptr;
    percentages[i] = std::strtod(rest, &end);
    if (end == rest || *end != (i < 2 ? ',' : '\0')) throw reject();
    rest = end + 1;
  }
  if (!are_valid(percentages)) throw reject();
  return percentages;
}

void require_valid(const Percentages& percentages) {
  if (!are_valid(percentages))
    throw UsageError(text("prepare: percentages must be positive with the sum 100, got ", percentages[0], ",",
                          percentages[1], ",", percentages[2]));
}

std::array<std::int64_t, 4> cuts_of(std::int64_t total, const Percentages& percentages) {
  // The small addition keeps a cut that is whole in exact arithmetic from being rounded down to the byte before it.
  const auto cut_at = [total](double share) {
    return static_cast<std::int64_t>(std::floor(static_cast<double>(total) * share / 100 + 1e-6));
  };
  return {0, cut_at(percentages[0]), cut_at(percentages[0] + percentages[1]), total};
}

void require_contents(const Source& source) {
  if (source.bytes.empty())
    throw FileError(text("prepare: a text must not be empty, got 0 bytes in '", source.name, "'"));
}

Corpus split_text(Source source, TextRule rule, const std::optional<Percentages>& percentages, bool exact_bytes,
                  bool drop_newlines) {
  check_options(rule, exact_bytes, drop_newlines);
  if (rule != TextRule::any && percentages && *percentages != kUsualPercentages)
    throw UsageError(text("prepare: the rule ", name_of(rule), " splits 90,5,5, got ", (*percentages)[0], ",",
                          (*percentages)[1], ",", (*percentages)[2], "\n  use --characters any for other splits"));
  const Percentages shares = percentages.value_or(kUsualPercentages);
  require_valid(shares);
  require_contents(source);
  if (rule == TextRule::text8)
    require_text8(source);
  else
    require_lines(source, exact_bytes || drop_newlines);

  Corpus corpus;
  corpus.rule = rule;
  corpus.drop_newlines = drop_newlines;
  corpus.sources.push_back(std::move(source));
  const std::string_view bytes = corpus.sources[0].bytes;
  const auto total = static_cast<std::int64_t>(bytes.size());
  if (rule != TextRule::any && total != kPublishedBytes)
    corpus.notes.push_back(text(name_of(rule), " has ", kPublishedBytes, " bytes, this file has ", total,
                                ": split 90/5/5 in proportion; results do not compare with published ones"));

  const std::array<std::int64_t, 4> cuts = cuts_of(total, shares);
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    corpus.splits[i].first_byte = cuts[i];
    corpus.splits[i].text =
        bytes.substr(static_cast<std::size_t>(cuts[i]), static_cast<std::size_t>(cuts[i + 1] - cuts[i]));
  }
  finish(corpus, exact_bytes);
  return corpus;
}

Corpus splits_of_files(std::array<Source, 3> sources, TextRule rule, bool exact_bytes, bool drop_newlines) {
  check_options(rule, exact_bytes, drop_newlines);
  Corpus corpus;
  corpus.rule = rule;
  corpus.drop_newlines = drop_newlines;
  for (Source& source : sources) {
    require_contents(source);
    if (rule == TextRule::text8) require_text8(source);
    corpus.sources.push_back(std::move(source));
  }
  if (rule != TextRule::text8) require_lines(corpus.sources[0], exact_bytes || drop_newlines);
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    corpus.splits[i].source = i;
    corpus.splits[i].text = corpus.sources[i].bytes;
  }
  finish(corpus, exact_bytes);
  return corpus;
}

}  // namespace engram::data
