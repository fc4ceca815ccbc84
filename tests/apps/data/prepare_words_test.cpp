/// `engram prepare --kind word` from files to a data folder, and folders of characters as they always were.

#include <cstdlib>
#include <map>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/data/text/word_corpus.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::prepare_words_test {

using namespace engram::data;

namespace {

PrepareOptions options_for(const TemporaryFolder& folder, std::string_view train, std::string_view valid,
                           std::string_view test) {
  PrepareOptions options;
  options.kind = TokenKind::word;
  options.train = put_file(folder / "train.txt", train);
  options.valid = put_file(folder / "valid.txt", valid);
  options.test = put_file(folder / "test.txt", test);
  options.out = folder / "data";
  return options;
}

PrepareOptions options_for(const TemporaryFolder& folder, std::string_view text) {
  PrepareOptions options;
  options.kind = TokenKind::word;
  options.text = put_file(folder / "source.txt", text);
  options.out = folder / "data";
  return options;
}

std::string decode(const DataSet& data, std::string_view split) {
  const TokenView tokens = data.split(split);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), ids.data());
  return data.vocabulary().decode(ids);
}

std::map<std::string, std::string> contents(const std::filesystem::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename().string()] = get_file(entry.path());
  return files;
}

template <class Expected>
std::string prepare_error(const PrepareOptions& options) {
  return message_of<Expected>([&] { prepare(options); });
}

}  // namespace

TEST_CASE("prepare words: three files become a data folder", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, " = A b = \n \n b b <unk> @-@ .\n", " b = b \n", "\n\nA");
  const PrepareSummary summary = prepare(options);
  CHECK(summary.kind == TokenKind::word);
  CHECK(summary.vocabulary_size == 7);  // b 3, <eos> 3, = 2, A, <unk>, @-@, .
  CHECK(summary.splits[0].tokens == 4 + 5 + 3);
  CHECK(summary.splits[0].end_tokens == 3);
  CHECK(summary.splits[1].tokens == 4);
  CHECK(summary.splits[2].tokens == 4);
  CHECK(summary.splits[2].end_tokens == 3);
  CHECK(summary.splits[2].end_appended);
  CHECK_FALSE(summary.splits[1].end_appended);
  CHECK(summary.notes.empty());

  const DataSet data = DataSet::open(options.out);
  CHECK(data.kind() == TokenKind::word);
  CHECK(decode(data, "train") == "= A b =\n\nb b <unk> @-@ .\n");
  CHECK(decode(data, "valid") == "b = b\n");
  CHECK(decode(data, "test") == "\n\nA\n");
  // b and <eos> are equally frequent, and <eos> is seen later.
  CHECK(data.vocabulary().end_token() == 0);
  CHECK(data.split("valid")[0] == 1);
  CHECK(contents(options.out).size() == 5);
  const nlohmann::json json = nlohmann::json::parse(get_file(options.out / "data.json"));
  CHECK(json["kind"] == "word");
  CHECK(json["eol"] == "keep");
  CHECK(json["ties"] == "later");
  CHECK(json["oov"] == "error");
  CHECK(json["min_count"] == 1);
  CHECK(json["splits"]["test"]["end_tokens"] == 3);
  CHECK(json["sources"][1]["hash"] == hash_text(hash_of(" b = b \n")));

  CHECK_NOTHROW(data.require_kind(TokenKind::word, "the test says so"));
  CHECK_THAT(message_of<UsageError>([&] { data.require_kind(TokenKind::character, "the test says so"); }),
             ContainsSubstring("must hold characters, got words") && ContainsSubstring("the test says so") &&
                 ContainsSubstring("--kind char"));
}

TEST_CASE("prepare words: line ends dropped, ties first", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, "a b\nb a\n", "a\nb\n", "b b");
  options.words = {.end_of_line = false, .ties = TieOrder::first};
  const PrepareSummary summary = prepare(options);
  CHECK(summary.vocabulary_size == 2);
  CHECK(summary.splits[0].tokens == 4);
  CHECK(summary.splits[0].end_tokens == 0);
  CHECK_FALSE(summary.splits[2].end_appended);
  const DataSet data = DataSet::open(options.out);
  CHECK(data.vocabulary().end_token() == -1);
  CHECK(data.split("train")[0] == 0);
  CHECK(decode(data, "train") == "a b b a");
  CHECK(decode(data, "valid") == "a b");
}

TEST_CASE("prepare words: one text is cut at line ends", "[data]") {
  TemporaryFolder folder;
  // Ten lines of ten bytes; 55% and 80% are inside the sixth line and at the end of the eighth.
  std::string text;
  for (int i = 0; i < 10; ++i) text += "a b c d" + std::string(i % 2 == 0 ? "  \n" : " \r\n");
  REQUIRE(text.size() == 100);
  PrepareOptions options = options_for(folder, text);
  options.split = Percentages{55, 25, 20};
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].bytes == 60);
  CHECK(summary.splits[0].end_tokens == 6);
  CHECK(summary.splits[1].first_byte == 60);
  CHECK(summary.splits[1].bytes == 20);
  CHECK(summary.splits[2].first_byte == 80);
  CHECK(summary.splits[2].tokens == 10);
  // 79 is between "\r" and "\n": the cut is after both.
  options.split = Percentages{55, 24, 21};
  CHECK(prepare(options).splits[2].first_byte == 80);
  options.split = Percentages{55, 26, 19};
  CHECK(prepare(options).splits[2].first_byte == 90);

  CHECK_THAT(prepare_error<FileError>(options_for(folder, "all in one line\n")),
             ContainsSubstring("at least 2 tokens") && ContainsSubstring("got 0 words in 0 lines for valid") &&
                 ContainsSubstring("cut at line ends only"));
}

TEST_CASE("prepare words: words that train lacks are an error or <unk>", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, "a b a\n", "a b\na\n\nb odd a\n", "x odd a b\n");
  CHECK_THAT(prepare_error<FileError>(options),
             ContainsSubstring("must occur in train, got 'odd' of valid in line 4 of '") &&
                 ContainsSubstring("valid.txt' (byte 9)") && ContainsSubstring("--oov unk"));
  CHECK_FALSE(std::filesystem::exists(options.out));
  options.words.unseen = UnseenWords::unk;
  PrepareSummary summary = prepare(options);
  CHECK(summary.vocabulary_size == 4);
  CHECK(summary.splits[0].unknown == 0);
  CHECK(summary.splits[1].unknown == 1);
  CHECK(summary.splits[2].unknown == 2);
  REQUIRE(summary.notes.size() == 2);
  CHECK_THAT(summary.notes[0], ContainsSubstring("1 tokens of valid and 2 of test became <unk>"));
  CHECK_THAT(summary.notes[1], ContainsSubstring("train has no <unk>"));
  CHECK(decode(DataSet::open(options.out), "test") == "<unk> <unk> a b\n");

  // Rare words of train are <unk> in every split; words that train never has stay an error.
  options = options_for(folder, "a b a b once a\n", "once a b\n", "a b\n");
  options.words.min_count = 2;
  summary = prepare(options);
  CHECK(summary.splits[0].unknown == 1);
  CHECK(summary.splits[1].unknown == 1);
  CHECK_THAT(summary.notes.at(0),
             ContainsSubstring("1 words that train has fewer than 2 times became <unk> (1 of its tokens)"));
  CHECK(decode(DataSet::open(options.out), "train") == "a b a b <unk> a\n");
  options = options_for(folder, "a b a b once a\n", "never a b\n", "a b\n");
  options.words.min_count = 2;
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("'never' of valid in line 1"));
}

TEST_CASE("prepare words: texts that are not UTF-8, empty or too short", "[data]") {
  TemporaryFolder folder;
  CHECK_THAT(prepare_error<FileError>(options_for(folder, "a b\nc\n", "a\r\nb\rc \xe9t\xe9\n", "a b\n")),
             ContainsSubstring("must be UTF-8, got 0xe9 at byte 7 in line 3 of '") && ContainsSubstring("valid.txt") &&
                 ContainsSubstring("iconv"));
  CHECK_THAT(prepare_error<FileError>(options_for(folder, "a b\xe2\x82", "a\n", "a\n")),
             ContainsSubstring("at byte 3 in line 1 of '") && ContainsSubstring("train.txt"));
  CHECK_THAT(prepare_error<FileError>(options_for(folder, "a b\n", "", "a\n")),
             ContainsSubstring("must not be empty, got 0 bytes in '") && ContainsSubstring("valid.txt"));
  PrepareOptions options = options_for(folder, "a b\n", "a\n", "  ");
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("got 0 words in 1 line for test"));
  options.test.clear();
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("got no --test"));
  options.test = folder / "none.txt";
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("none.txt") && ContainsSubstring("No such file"));
  options = options_for(folder, "a b\na\n", "a\n", "a\n");
  for (const auto& spoil : std::vector<std::function<void(PrepareOptions&)>>{
           [](PrepareOptions& o) { o.rule = TextRule::enwik8; }, [](PrepareOptions& o) { o.exact_bytes = true; },
           [](PrepareOptions& o) { o.vocabulary_from = VocabularyFrom::all; }}) {
    PrepareOptions wrong = options;
    spoil(wrong);
    CHECK_THAT(prepare_error<UsageError>(wrong), ContainsSubstring("work with --kind char"));
  }
  CHECK_FALSE(std::filesystem::exists(options.out));
}

TEST_CASE("prepare words: a byte order mark is left out and said", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder,
                                       "\xef\xbb\xbf"
                                       "a b\n",
                                       "a\n",
                                       "\xef\xbb\xbf"
                                       "b a\n");
  const PrepareSummary summary = prepare(options);
  CHECK(summary.vocabulary_size == 3);
  CHECK(summary.notes.size() == 2);
  CHECK_THAT(summary.notes[0], ContainsSubstring("train.txt' begins with a byte order mark"));
  CHECK(summary.splits[0].first_byte == 3);
  PrepareOptions one = options_for(folder,
                                   "\xef\xbb\xbf"
                                   "a b\na b\na b\n");
  one.split = Percentages{34, 33, 33};
  CHECK(prepare(one).vocabulary_size == 3);
}

TEST_CASE("prepare words: other options are another data set, and replace it whole", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, "a b c\nc b\n", "a b\n", "c\n");
  prepare(options);
  const std::uint64_t first = DataSet::open(options.out).hash();
  const auto before = contents(options.out);
  prepare(options);
  CHECK(contents(options.out) == before);
  options.words.ties = TieOrder::first;
  prepare(options);
  const DataSet second = DataSet::open(options.out);
  CHECK(second.hash() != first);
  CHECK_THAT(message_of<FileError>([&] { second.require_vocabulary(7, "the checkpoint 'run'"); }),
             ContainsSubstring("their ids mean different words"));
  options.words.end_of_line = false;
  prepare(options_for(folder, "a b c\nc b\n", "a b\n", "c\n"));
  CHECK(DataSet::open(options.out).hash() == first);
  CHECK(contents(options.out) == before);

  // A failure leaves it as it was, and characters may take its place.
  CHECK(prepare_error<FileError>(options_for(folder, "a b\n", "odd\n", "a\n")) != "");
  CHECK(contents(options.out) == before);
  PrepareOptions characters = options_for(folder, "a b c\nc b\n", "a b\n", "c\n");
  characters.kind = TokenKind::character;
  prepare(characters);
  CHECK(DataSet::open(options.out).kind() == TokenKind::character);
  // Parts of both are no data set.
  put_file(options.out / "data.json", before.at("data.json"));
  CHECK_THAT(message_of<FileError>([&] { DataSet::open(options.out); }),
             ContainsSubstring("must be of the kind of the vocabulary"));
}

TEST_CASE("prepare words: the wide ids of a large vocabulary", "[data]") {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 70'000; ++i) text += "w" + std::to_string(i) + (i % 10 == 9 ? "\n" : " ");
  PrepareOptions options = options_for(folder, text + "w7 w7", "w69999 w7\n", "w0\n");
  CHECK(prepare(options).vocabulary_size == 70'001);
  const DataSet data = DataSet::open(options.out);
  CHECK(data.split("train").width() == 4);
  CHECK(data.split("train").size() == 77'003);
  CHECK(decode(data, "valid") == "w69999 w7\n");
  CHECK(data.vocabulary().words()->word(0) == "<eos>");
  CHECK(data.vocabulary().words()->word(1) == "w7");
  CHECK(data.vocabulary().words()->word(2) == "w69999");  // of the words seen once the last
  CHECK(data.vocabulary().words()->word(70'000) == "w0");
}

TEST_CASE("prepare words: what looks like WikiText-103 is compared with its numbers", "[data]") {
  const auto splits = [](std::int64_t train, std::int64_t valid, std::int64_t test) {
    std::array<WordSplit, 3> made;
    made[0].lines = made[1].lines = made[2].lines = 1000;
    made[0].words = train - 1000;
    made[1].words = valid - 1000;
    made[2].words = test - 1000;
    return made;
  };
  CHECK(wikitext103_note(splits(103'227'021, 217'646, 245'569), 267'735).empty());
  CHECK(wikitext103_note(splits(103'227'021, 217'646, 245'569), 0).empty());
  CHECK_THAT(wikitext103_note(splits(103'227'020, 217'646, 245'569), 267'735),
             ContainsSubstring("looks like WikiText-103") && ContainsSubstring("103227020, 217646 and 245569"));
  CHECK_THAT(wikitext103_note(splits(103'227'021, 217'647, 245'569), 0), ContainsSubstring("217647"));
  CHECK_THAT(wikitext103_note(splits(103'227'021, 217'646, 245'569), 267'736),
             ContainsSubstring("a vocabulary of 267736"));
  CHECK(wikitext103_note(splits(2'000'000, 217'646, 245'569), 33'278).empty());
}

TEST_CASE("prepare words: the tokens of WikiText's validation and test files", "[data]") {
  const char* const asked = std::getenv("ENGRAM_TEST_TEXTS");
  const std::filesystem::path texts = asked != nullptr ? asked : ENGRAM_SOURCE_DIR "/../shared/data";
  const auto valid = texts / "wikitext.valid.txt", test = texts / "wikitext.test.txt";
  if (!std::filesystem::exists(valid) || !std::filesystem::exists(test)) {
    WARN("skipped: no WikiText in '" << texts.string() << "'; ENGRAM_TEST_TEXTS names the folder");
    return;
  }
  TemporaryFolder folder;
  PrepareOptions options;
  options.kind = TokenKind::word;
  options.train = options.valid = valid;
  options.test = test;
  options.out = folder / "data";
  options.words.unseen = UnseenWords::unk;
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[1].tokens == 217'646);
  CHECK(summary.splits[1].end_tokens == 3'760);
  CHECK(summary.splits[2].tokens == 245'569);
  CHECK(summary.splits[2].end_tokens == 4'358);
  options.words.end_of_line = false;
  CHECK(prepare(options).splits[1].tokens == 213'886);
}

TEST_CASE("data set: a folder of characters written by hand opens", "[data]") {
  // The format before there were words: no part of it may change its meaning.
  TemporaryFolder folder;
  const auto number = [](std::uint64_t value, int bytes) {
    std::string out;
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
    return out;
  };
  // docs/reference/checkpoints.md: the format's name, the flag for text8, the size and the entries, eight bytes each.
  Fnv1a64 vocabulary;
  vocabulary.add("engram character vocabulary");
  for (const int value : {0, 3, 98, 97, 10}) vocabulary.add_number(static_cast<std::uint64_t>(value));
  const std::string hash = hash_text(vocabulary.value());
  put_file(folder / "vocabulary.json",
           R"({"format":"engram character vocabulary","version":1,"size":3,"hash":")" + hash +
               R"(","source_hash":"fnv1a64:0000000000000001","end_token":2,"space_is_underscore":false,)" +
               R"("bytes":[98,97,10]})" + "\n");
  std::string splits;
  for (const char* name : {"train", "valid", "test"}) {
    const std::string ids("\0\1\0\2", 4);
    const std::string header = "ENGRAMTK" + number(1, 4) + number(1, 4) + number(3, 8) + number(4, 8) +
                               number(vocabulary.value(), 8) + number(hash_of(ids), 8);
    put_file(folder / (std::string(name) + ".tokens"), header + number(hash_of(header), 8) + ids);
    splits += (splits.empty() ? "" : ",") + ("\"" + std::string(name)) + R"(":{"tokens":4,"content_hash":")" +
              hash_text(hash_of(ids)) + "\"}";
  }
  const std::string start = R"({"format":"engram data","version":1,)",
                    end = R"("rule":"any","splits":{)" + splits + "}}";
  for (const char* kind : {R"("kind":"char",)", ""}) {
    put_file(folder / "data.json", start + kind + end);
    const DataSet data = DataSet::open(folder.path());
    CHECK(data.kind() == TokenKind::character);
    CHECK(data.vocabulary().hash() == vocabulary.value());
    CHECK(data.vocabulary().end_token() == 2);
    CHECK(decode(data, "test") == "bab\n");
    CHECK(data.vocabulary().words() == nullptr);
  }
  CHECK_THAT(message_of<UsageError>([&] {
               DataSet::open(folder.path()).require_kind(TokenKind::word, "the configuration has clusters of words");
             }),
             ContainsSubstring("must hold words, got characters") && ContainsSubstring("clusters of words") &&
                 ContainsSubstring("--kind word"));
}

}  // namespace engram::harness::prepare_words_test
