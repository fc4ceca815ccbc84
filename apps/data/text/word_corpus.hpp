#pragma once
/// A text of words and its three splits. Texts are UTF-8, of lines of words (line_words.hpp); nothing in them is
/// changed: case, "<unk>" and "@-@" stay, as in the files of WikiText-103. One text is cut at line ends.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/corpus.hpp"

namespace engram::data {

struct WordSplit {
  std::string_view text;
  std::size_t source = 0;       ///< index in WordCorpus::sources
  std::int64_t first_byte = 0;  ///< where `text` begins in its source
  std::int64_t words = 0;       ///< in it
  std::int64_t lines = 0;       ///< in it, blank ones too, and a last one without a line end
  bool end_missing = false;     ///< the last line has no line end
  std::int64_t token_count(bool end_of_line) const { return words + (end_of_line ? lines : 0); }
};

/// Owns the sources that its splits point into; movable, not copyable.
struct WordCorpus {
  WordCorpus() = default;
  WordCorpus(WordCorpus&&) = default;
  WordCorpus& operator=(WordCorpus&&) = default;
  WordCorpus(const WordCorpus&) = delete;

  std::vector<Source> sources;
  std::array<WordSplit, 3> splits;  ///< in the order of kSplitNames
  std::vector<std::string> notes;   ///< what the user should be told, one sentence each
};

/// Cuts one text into three: each cut is moved on to the next line end. `end_of_line` says whether line ends are
/// tokens. Throws UsageError for percentages that are wrong; FileError for an empty text, one that is not UTF-8 (naming
/// byte and line), and a split of fewer than two tokens.
WordCorpus split_lines(Source source, const Percentages& percentages, bool end_of_line);

/// Takes each split from a file of its own, train, valid, test in this order. Throws as split_lines.
WordCorpus lines_of_files(std::array<Source, 3> sources, bool end_of_line);

/// The byte `at` of a split's text for people: "line 12 of 'wiki.valid.txt' (byte 345)".
std::string place_text(const WordCorpus& corpus, const WordSplit& split, std::size_t at);

/// What the user should be told when a corpus looks like WikiText-103 but has not its numbers ([all-attention 7.1]:
/// 103,227,021, 217,646 and 245,569 tokens with line ends, 267,735 different ones); empty when it has them, and when
/// it is another corpus (a split differs by more than 5%). `vocabulary_size` is with the end token; 0: not compared.
std::string wikitext103_note(const std::array<WordSplit, 3>& splits, std::int64_t vocabulary_size);
/// What the user should be told when a corpus looks like the Penn Treebank ([transformer-xl 6.1]: 929,589, 73,760 and
/// 82,430 tokens, 10,000 different ones).
std::string penn_treebank_note(const std::array<WordSplit, 3>& splits, std::int64_t vocabulary_size);

}  // namespace engram::data
