/// `engram prepare --word-list` and the rules of lm1b ([transformer-xl 6.1]), on small files in their formats.

#include <algorithm>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/named_rules.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/data/text/line_pieces.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/published_data.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::word_list_test {

using namespace engram::data;

namespace {

nlohmann::json data_json(const PrepareOptions& options) {
  return nlohmann::json::parse(get_file(options.out / "data.json"));
}

/// An lm1b of two shards, in a folder, with its held-out file and its list.
PrepareOptions sentences(const TemporaryFolder& folder, std::string_view rules) {
  PrepareOptions options = options_of(folder, rules);
  options.train = folder / "training";
  std::filesystem::create_directory(options.train);
  put_file(options.train / "news.en-00002-of-00100", "The end .\n");
  put_file(options.train / "news.en-00001-of-00100", "A dog barks .\nThe dog is odd\n");
  put_file(options.train / ".hidden", "no text at all\n");
  options.valid = put_file(folder / "news.en.heldout-00000-of-00050", "A new dog .\nThe end\n");
  options.word_list = put_file(folder / "words.txt", "<S>\n</S>\n<UNK>\nThe 20\n. 10\ndog\nA\nbarks\nis\nend\n");
  return options;
}

}  // namespace

TEST_CASE("rules: lm1b reads shards by name, with ids of the list and <S> around sentences", "[data][transformer-xl]") {
  TemporaryFolder folder;
  const PrepareOptions options = sentences(folder, "lm1b");
  const PrepareSummary summary = prepare(options);
  CHECK(summary.vocabulary_size == 10);
  CHECK(summary.splits[0].tokens == 4 + 4 + 3 + 6);
  CHECK(summary.splits[0].end_tokens == 6);
  CHECK(summary.splits[0].certain_marks == 2);
  CHECK(summary.splits[0].unknown == 1);
  CHECK(summary.splits[0].source_count == 2);
  CHECK(summary.splits[1].tokens == 4 + 2 + 4);
  CHECK(summary.splits[1].certain_marks == 1);
  CHECK(summary.splits[1].unknown == 1);
  REQUIRE(summary.notes.size() == 3);
  CHECK_THAT(summary.notes[0], ContainsSubstring("valid and test are the same text"));
  CHECK_THAT(summary.notes[1], ContainsSubstring("2, 1 and 1 tokens are sentence marks straight after another one"));
  CHECK_THAT(summary.notes[2], ContainsSubstring("1 words of train, 1 of valid and 1 of test"));

  const DataSet data = DataSet::open(options.out);
  CHECK(words_of(data, "train") == "<S> A dog barks . <S> <S> The dog is <UNK> <S> <S> The end . <S>");
  CHECK(words_of(data, "valid") == "<S> A <UNK> dog . <S> <S> The end <S>");
  CHECK(ids_of(data, "valid") == ids_of(data, "test"));
  CHECK(ids_of(data, "valid") == TokenIds{0, 6, 2, 5, 4, 0, 0, 3, 9, 0});
  CHECK(data.doubled_mark() == 0);
  CHECK(data.vocabulary().end_token() == 0);
  CHECK(data.vocabulary().words()->unknown_token() == 2);
  CHECK(data.vocabulary().words()->marks() == WordMarks{"<S>", "<UNK>"});
  const nlohmann::json json = data_json(options);
  CHECK(json["rules"] == "lm1b");
  CHECK(json["sentences"] == "around");
  CHECK(json["sources"].size() == 4);
  CHECK(json["sources"][1]["hash"] == hash_text(hash_of("The end .\n")));
  CHECK(json["splits"]["train"]["source_count"] == 2);
  CHECK(json["splits"]["train"]["certain_marks"] == 2);
  CHECK(json["splits"]["test"]["source"] == 3);

  // Another vocabulary than the same words with line ends of the usual names.
  WordTable words;
  for (const char* word : {"<S>", "<eos>"}) words.add(word);
  CHECK(WordVocabulary(words, true, 0).hash() != WordVocabulary(words, true, 0, {"<S>", "<UNK>"}).hash());
}

TEST_CASE("rules: lm1b sentence by sentence has one mark between two", "[data][transformer-xl]") {
  TemporaryFolder folder;
  PrepareOptions options = sentences(folder, "lm1b-sentences");
  // Neither a missing line end nor a border of files makes a difference; a blank line is a sentence without words.
  put_file(options.train / "news.en-00003-of-00100", "A dog\n\nThe end");
  const PrepareSummary summary = prepare(options);
  const DataSet data = DataSet::open(options.out);
  CHECK(words_of(data, "train") ==
        "<S> A dog barks . <S> The dog is <UNK> <S> The end . <S> A dog <S> <S> The end <S>");
  CHECK(summary.splits[0].end_appended);
  CHECK(summary.splits[0].certain_marks == 0);  // a sentence without words is no certainty
  CHECK(words_of(data, "test") == "<S> A <UNK> dog . <S> The end <S>");
  CHECK(data.doubled_mark() == -1);
  CHECK_FALSE(data_json(options)["splits"]["train"].contains("certain_marks"));
  // Per sentence: inputs all but the last mark, targets all but the first; so of the whole.
  CHECK(summary.splits[1].tokens - 1 == (4 + 1) + (2 + 1));
}

TEST_CASE("rules: a list without sentences, lower case, and its errors", "[data][transformer-xl]") {
  TemporaryFolder folder;
  PrepareOptions options = sentences(folder, "lm1b");
  options.words = {.lower = true};
  put_file(options.word_list, "<eos>\nthe\ndog\nend\n.\na\nbarks\nis\nodd\n");
  options.test = put_file(folder / "test.txt", "\n the\tDog");
  options.valid = put_file(folder / "valid.txt", "\xef\xbb\xbfThe end\n");
  prepare(options);
  const DataSet data = DataSet::open(options.out);
  CHECK(words_of(data, "train") == "a dog barks . <eos> the dog is odd <eos> the end . <eos>");
  CHECK(words_of(data, "valid") == "the end <eos>");
  CHECK(words_of(data, "test") == "<eos> the dog <eos>");

  const auto file_error = [](const PrepareOptions& wrong) { return message_of<FileError>([&] { prepare(wrong); }); };
  const auto usage_error = [](const PrepareOptions& wrong) { return message_of<UsageError>([&] { prepare(wrong); }); };
  put_file(options.test, "the\n\n a new end\n");
  CHECK_THAT(file_error(options), ContainsSubstring("must be in the word list, got 'new' in line 3 of '") &&
                                      ContainsSubstring("test.txt'") && ContainsSubstring("--oov unk"));
  options.words.unseen = UnseenWords::unk;
  CHECK_THAT(file_error(options), ContainsSubstring("'new' in line 3") && ContainsSubstring("the list has no <UNK>"));
  CHECK(words_of(DataSet::open(options.out), "test") == "<eos> the dog <eos>");  // the older one stayed
  put_file(options.test, "the\n\n a \xe9nd\n");
  CHECK_THAT(file_error(options),
             ContainsSubstring("must be UTF-8, got 0xe9 in line 3 of '") && ContainsSubstring("(byte 8)"));

  options = sentences(folder, "lm1b");
  PrepareOptions wrong = options;
  wrong.words.min_count = 2;
  CHECK_THAT(usage_error(wrong), ContainsSubstring("rules of counted vocabularies"));
  wrong = options;
  wrong.train.clear();
  CHECK_THAT(usage_error(wrong), ContainsSubstring("needs --train and --valid") && ContainsSubstring("no --train"));
  wrong = options;
  wrong.word_list.clear();
  CHECK_THAT(usage_error(wrong), ContainsSubstring("--sentences around works with --word-list"));
  wrong = options;
  wrong.train = folder / "empty";
  std::filesystem::create_directory(wrong.train);
  CHECK_THAT(file_error(wrong), ContainsSubstring("must have a file in it, got none"));
  wrong = options;
  wrong.valid = put_file(folder / "nothing.txt", "");
  CHECK_THAT(file_error(wrong), ContainsSubstring("at least 2 tokens") && ContainsSubstring("got 0 for valid"));
  wrong = options;
  for (const auto& [list, fact] :
       std::vector<std::pair<std::string, std::string>>{{"<S>\na\na 3\n", "got 'a' a second time in line 3"},
                                                        {"<S>\n\na\n", "got none in line 2"},
                                                        {"", "got none in line 1"},
                                                        {"<S>\n\xff\n", "got no UTF-8 in line 2"},
                                                        {"a\nb\n", "must have <S>"}}) {
    put_file(wrong.word_list, list);
    CHECK_THAT(file_error(wrong), ContainsSubstring(fact));
  }
  CHECK_THAT(message_of<UsageError>([&] { set_named_rules("wikitext", wrong); }),
             ContainsSubstring("wikitext-103, lm1b") && ContainsSubstring("got 'wikitext'"));
  wrong = three_files(folder, "enwik8", "ab\n", "ab", "ab");
  wrong.exact_bytes = true;
  CHECK_THAT(usage_error(wrong), ContainsSubstring("--newlines drop"));
  wrong = three_files(folder, "enwik8", "ab\n", "ab", "ab");
  wrong.word_list = options.word_list;
  CHECK_THAT(usage_error(wrong), ContainsSubstring("--word-list, --eol") && ContainsSubstring("work with --kind word"));
  wrong = three_files(folder, "ptb", "ab\n", "ab", "ab");
  wrong.drop_newlines = true;
  CHECK_THAT(usage_error(wrong), ContainsSubstring("work with --kind char"));
  CHECK(named_rules(PrepareOptions{}).empty());
}

TEST_CASE("rules: a line that is much longer than the pieces of a file is one piece", "[data]") {
  TemporaryFolder folder;
  // Looking through all of a line for each of its pieces would be 5 10^9 bytes.
  const std::string line(100'000, 'x'), bytes = "first\n" + line + "\nlast";
  LinePieces pieces(put_file(folder / "text", bytes), 1);
  for (const std::string& expected : {std::string("first\n"), line + "\n", std::string("last")}) {
    std::string piece;
    REQUIRE(pieces.next(piece));
    CHECK(piece == expected);
  }
  std::string piece;
  CHECK_FALSE(pieces.next(piece));
  CHECK(pieces.hash() == hash_of(bytes));
}

TEST_CASE("rules: files are read in pieces of whole lines", "[data][transformer-xl]") {
  TemporaryFolder folder;
  std::string text;
  for (int line = 0; line < 200; ++line) text += std::string(static_cast<std::size_t>(line % 37), 'x') + "\r\n";
  for (const std::string& bytes : {text, text + "tail", std::string("no end"), std::string("\n"), std::string()})
    for (const std::size_t piece_bytes : {1, 7, 64, 100'000}) {
      CAPTURE(bytes.size(), piece_bytes);
      LinePieces pieces(put_file(folder / "text", bytes), piece_bytes);
      std::string piece, all;
      std::size_t largest = 0;
      while (pieces.next(piece)) {
        REQUIRE(pieces.first_byte() == static_cast<std::int64_t>(all.size()));
        all += piece;
        largest = std::max(largest, piece.size());
        REQUIRE((piece.ends_with('\n') || all.size() == bytes.size()));
      }
      CHECK(all == bytes);
      CHECK_FALSE(pieces.next(piece));
      CHECK(pieces.bytes() == static_cast<std::int64_t>(bytes.size()));
      CHECK(pieces.hash() == hash_of(bytes));
      CHECK(largest <= piece_bytes + 40);
    }
  CHECK_THAT(message_of<FileError>([&] { LinePieces(folder / "none"); }), ContainsSubstring("No such file"));
  LinePieces of_folder(folder.path());
  std::string piece;
  CHECK_THAT(message_of<FileError>([&] { of_folder.next(piece); }), ContainsSubstring("must be a readable file"));
}

}  // namespace engram::harness::word_list_test
