#include "apps/data/text/word_corpus.hpp"

#include <cmath>
#include <utility>

#include "apps/data/text/line_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

void require_utf8(const Source& source) {
  require_contents(source);
  const std::string_view bytes = source.bytes;
  const std::size_t wrong = find_invalid_utf8(bytes);
  if (wrong == bytes.size()) return;
  throw FileError(text("prepare: a text of words must be UTF-8, got ", byte_text(bytes[wrong]), " at byte ", wrong,
                       " in line ", line_number(bytes, wrong), " of '", source.name, "'",
                       "\n  convert the file first, for example with iconv -t UTF-8"));
}

/// Bytes before the text proper: some editors sign UTF-8 files, and the sign would become part of the first word.
std::size_t signature_length(const Source& source, std::vector<std::string>& notes) {
  if (!source.bytes.starts_with(kByteOrderMark)) return 0;
  notes.push_back(text("'", source.name, "' begins with a byte order mark, which is left out"));
  return kByteOrderMark.size();
}

void count(WordSplit& split) {
  LineWordReader reader(split.text);
  using Piece = LineWordReader::Piece;
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next())
    ++(piece == Piece::word ? split.words : split.lines);
  split.end_missing = !is_at_line_start(split.text);
  if (split.end_missing) ++split.lines;
}

void finish(WordCorpus& corpus, bool end_of_line) {
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    WordSplit& split = corpus.splits[i];
    const Source& source = corpus.sources[split.source];
    count(split);
    if (split.token_count(end_of_line) < 2)
      throw FileError(text("prepare: every split needs at least 2 tokens (an input and a target), got ", split.words,
                           split.words == 1 ? " word" : " words", " in ", split.lines,
                           split.lines == 1 ? " line" : " lines", " for ", kSplitNames[i], " from '", source.name,
                           "' (", source.bytes.size(), " bytes)",
                           "\n  give a longer text or other --split percentages; texts are cut at line ends only"));
  }
}

/// A published corpus: tokens of train, valid and test with line ends, and how many different ones there are.
struct PublishedCorpus {
  std::string_view name;
  std::array<std::int64_t, 3> tokens;
  std::int64_t vocabulary;
};

std::string published_note(const PublishedCorpus& published, const std::array<WordSplit, 3>& splits,
                           std::int64_t vocabulary_size) {
  constexpr double kNear = 0.05;
  const auto listed = [](const std::array<std::int64_t, 3>& counts) {
    return text(counts[0], ", ", counts[1], " and ", counts[2]);
  };
  std::array<std::int64_t, 3> tokens{};
  for (std::size_t i = 0; i < splits.size(); ++i) {
    tokens[i] = splits[i].token_count(true);
    const std::int64_t difference = std::abs(tokens[i] - published.tokens[i]);
    if (static_cast<double>(difference) > kNear * static_cast<double>(published.tokens[i])) return "";
  }
  if (tokens == published.tokens && (vocabulary_size == 0 || vocabulary_size == published.vocabulary)) return "";
  const std::string entries = vocabulary_size == 0 ? "" : text(" and a vocabulary of ", vocabulary_size);
  return text("this looks like ", published.name, ", which has ", listed(published.tokens),
              " tokens with line ends and a vocabulary of ", published.vocabulary, ", but it has ", listed(tokens),
              entries, ": results do not compare with published ones");
}

}  // namespace

WordCorpus split_lines(Source source, const Percentages& percentages, bool end_of_line) {
  require_valid(percentages);
  require_utf8(source);
  WordCorpus corpus;
  corpus.sources.push_back(std::move(source));
  const std::string_view bytes = corpus.sources[0].bytes;
  const std::size_t signature = signature_length(corpus.sources[0], corpus.notes);
  std::array<std::size_t, 4> cuts{signature, 0, 0, bytes.size()};
  const std::array<std::int64_t, 4> shares = cuts_of(std::ssize(bytes), percentages);
  for (std::size_t i = 1; i <= 2; ++i)
    cuts[i] = std::max(next_line_start(bytes, static_cast<std::size_t>(shares[i])), signature);
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    corpus.splits[i].first_byte = static_cast<std::int64_t>(cuts[i]);
    corpus.splits[i].text = bytes.substr(cuts[i], cuts[i + 1] - cuts[i]);
  }
  finish(corpus, end_of_line);
  return corpus;
}

WordCorpus lines_of_files(std::array<Source, 3> sources, bool end_of_line) {
  WordCorpus corpus;
  for (Source& source : sources) {
    require_utf8(source);
    corpus.sources.push_back(std::move(source));
  }
  for (std::size_t i = 0; i < corpus.splits.size(); ++i) {
    const std::size_t signature = signature_length(corpus.sources[i], corpus.notes);
    corpus.splits[i].source = i;
    corpus.splits[i].first_byte = static_cast<std::int64_t>(signature);
    corpus.splits[i].text = std::string_view(corpus.sources[i].bytes).substr(signature);
  }
  finish(corpus, end_of_line);
  return corpus;
}

std::string place_text(const WordCorpus& corpus, const WordSplit& split, std::size_t at) {
  const Source& source = corpus.sources[split.source];
  const std::size_t byte = static_cast<std::size_t>(split.first_byte) + at;
  return text("line ", line_number(source.bytes, byte), " of '", source.name, "' (byte ", byte, ")");
}

std::string wikitext103_note(const std::array<WordSplit, 3>& splits, std::int64_t vocabulary_size) {
  return published_note({"WikiText-103", {103'227'021, 217'646, 245'569}, 267'735}, splits, vocabulary_size);
}

std::string penn_treebank_note(const std::array<WordSplit, 3>& splits, std::int64_t vocabulary_size) {
  return published_note({"the Penn Treebank", {929'589, 73'760, 82'430}, 10'000}, splits, vocabulary_size);
}

}  // namespace engram::data
