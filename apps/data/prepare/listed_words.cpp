/// Preparing words with the ids of a list: one pass over files of any size ([transformer-xl 6.1], lm1b).

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "apps/data/prepare/finish.hpp"
#include "apps/data/prepare/folder_writer.hpp"
#include "apps/data/prepare/kinds.hpp"
#include "apps/data/prepare/sources.hpp"
#include "apps/data/text/line_pieces.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/word_list.hpp"
#include "core/error.hpp"

namespace engram::data {
namespace {

namespace fs = std::filesystem;

void require_list_options(const PrepareOptions& options) {
  const WordRules& rules = options.words;
  if (rules.min_count != 1 || rules.end_first || rules.count_all || rules.ties != TieOrder::later)
    throw UsageError(
        "prepare: --min-count, --ties, --eos-id and --count-from are rules of counted vocabularies, got one of them "
        "with --word-list");
  if (!options.text.empty() || options.split || options.train.empty() || options.valid.empty())
    throw UsageError(text("prepare: --word-list needs --train and --valid (files or folders), got ",
                          !options.text.empty() || options.split ? "--text or --split"
                          : options.train.empty()                ? "no --train"
                                                                 : "no --valid"));
}

/// Writes the tokens of one split, file after file.
class ListedEncoder {
 public:
  ListedEncoder(const WordVocabulary& vocabulary, const WordRules& rules, SplitSummary& split, TokenFileWriter& writer)
      : vocabulary_(vocabulary), rules_(rules), split_(split), writer_(writer) {
    if (rules_.sentences == SentenceMarks::between) put_mark();
  }

  SourceFacts add_file(const fs::path& path, const ByteWatch& watch) {
    std::error_code ignored;
    const std::uintmax_t bytes = fs::is_regular_file(path, ignored) ? fs::file_size(path, ignored) : 0;
    LinePieces pieces(path);
    path_ = path.string();
    line_ = 1;
    bool end_missing = false;
    for (std::string piece; pieces.next(piece);) {
      end_missing = !is_at_line_start(piece);
      add_piece(piece, pieces.first_byte());
      watch(pieces.bytes(), static_cast<std::int64_t>(bytes));
    }
    if (end_missing) {
      end_line();
      split_.end_appended = vocabulary_.end_token() >= 0;
    }
    write();
    split_.bytes += pieces.bytes();
    return {path_, pieces.bytes(), pieces.hash()};
  }

 private:
  void add_piece(std::string& piece, std::int64_t first_byte) {
    if (const std::size_t wrong = find_invalid_utf8(piece); wrong < piece.size())
      throw FileError(text("prepare: a text of words must be UTF-8, got ", byte_text(piece[wrong]), " in line ",
                           line_ + line_number(piece, wrong) - 1, " of '", path_, "' (byte ",
                           first_byte + static_cast<std::int64_t>(wrong), ")",
                           "\n  convert the file first, for example with iconv -t UTF-8"));
    if (first_byte == 0 && piece.starts_with("\xef\xbb\xbf")) piece.erase(0, 3);  // a byte order mark is no letter
    if (rules_.lower) lower_ascii(piece);
    LineWordReader reader(piece);
    for (auto part = reader.next(); part != LineWordReader::Piece::text_end; part = reader.next()) {
      if (part == LineWordReader::Piece::line_end) {
        end_line();
        ++line_;
      } else {
        begin_line();
        put_word(reader.word());
      }
      if (ids_.size() >= kWritten) write();
    }
  }

  void begin_line() {
    if (!std::exchange(line_open_, true) && rules_.sentences == SentenceMarks::around) put_mark();
  }

  void end_line() {
    begin_line();  // of a blank one
    line_open_ = false;
    if (vocabulary_.end_token() >= 0) put_mark();
  }

  void put_mark() {
    ++split_.end_tokens;
    if (rules_.sentences == SentenceMarks::around && last_ == vocabulary_.end_token()) ++split_.certain_marks;
    put(vocabulary_.end_token());
  }

  void put_word(std::string_view word) {
    std::int32_t id = vocabulary_.id_of(word);
    if (id < 0) {
      const bool may_be_unknown = rules_.unseen == UnseenWords::unk;
      id = may_be_unknown ? vocabulary_.unknown_token() : -1;
      if (id < 0)
        throw FileError(text("prepare: every word must be in the word list, got '", word, "' in line ", line_, " of '",
                             path_, "'\n  ",
                             may_be_unknown ? "the list has no <UNK> or <unk> to put in its place"
                                            : "--oov unk puts the list's <UNK> in the place of such words"));
      ++split_.unknown;
    }
    put(id);
  }

  void put(std::int32_t id) {
    ids_.push_back(id);
    last_ = id;
  }

  void write() {
    writer_.append(ids_);
    ids_.clear();
  }

  static constexpr std::size_t kWritten = std::size_t{1} << 16;
  const WordVocabulary& vocabulary_;
  const WordRules& rules_;
  SplitSummary& split_;
  TokenFileWriter& writer_;
  std::vector<std::int32_t> ids_;
  std::string path_;
  std::int64_t line_ = 1;
  std::int32_t last_ = -1;
  bool line_open_ = false;
};

/// What the user should be told, one sentence each.
std::vector<std::string> notes_of(const PrepareSummary& summary, bool test_is_valid) {
  std::vector<std::string> notes;
  const auto& splits = summary.splits;
  if (test_is_valid)
    notes.push_back(text("valid and test are the same text, '", splits[1].source,
                         "', as lm1b is published: a model chosen on the one is chosen on the other"));
  if (splits[0].certain_marks > 0)
    notes.push_back(text(splits[0].certain_marks, ", ", splits[1].certain_marks, " and ", splits[2].certain_marks,
                         " tokens are sentence marks straight after another one: models are sure of them, so that "
                         "perplexities are lower than without them"));
  if (splits[0].unknown + splits[1].unknown + splits[2].unknown > 0)
    notes.push_back(text(splits[0].unknown, " words of train, ", splits[1].unknown, " of valid and ", splits[2].unknown,
                         " of test are not in the word list"));
  return notes;
}

}  // namespace

PrepareSummary prepare_listed_words(const PrepareOptions& options) {
  require_word_options(options);
  require_list_options(options);
  const bool test_is_valid = options.test.empty() || options.test == options.valid;
  const std::array<std::vector<fs::path>, 3> files{shards_of(options.train), shards_of(options.valid),
                                                   shards_of(test_is_valid ? options.valid : options.test)};
  const Vocabulary vocabulary(read_word_list(options.word_list, options.words));
  FolderWriter writer(options.out, vocabulary);
  PrepareSummary summary;
  std::vector<SourceFacts> sources;
  for (std::size_t i = 0; i < files.size(); ++i) {
    SplitSummary& split = summary.splits[i];
    const fs::path& given = i == 0 ? options.train : i == 1 || test_is_valid ? options.valid : options.test;
    split.name = kSplitNames[i];
    split.source = given.string();
    split.source_index = sources.size();
    split.source_count = std::ssize(files[i]);
    TokenFileWriter& tokens = writer.begin_split();
    ListedEncoder encoder(*vocabulary.words(), options.words, split, tokens);
    for (const fs::path& file : files[i]) {
      options.watch.begin(text("reading '", file.string(), "'"));
      sources.push_back(encoder.add_file(file, options.watch.at));
    }
    split.words = tokens.count() - split.end_tokens;
    if (tokens.count() < 2)
      throw FileError(text("prepare: every split needs at least 2 tokens (an input and a target), got ", tokens.count(),
                           " for ", kSplitNames[i], " from '", split.source, "'"));
  }
  summary.notes = notes_of(summary, test_is_valid);
  finish(options, sources, vocabulary, writer, summary);
  return summary;
}

}  // namespace engram::data
