/// Byte pairs from text to ids and back: base64, pieces of UTF-8, counting, learning, encoding, the vocabulary's files.

#include <array>
#include <string>
#include <vector>

#include "apps/data/files/base64.hpp"
#include "apps/data/text/utf8.hpp"
#include "apps/data/vocabulary/subword_counts.hpp"
#include "apps/data/vocabulary/subword_vocabulary.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/subword_texts.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::subwords_test {

using namespace engram::data;

namespace {

/// A model of ordinary words; learned once.
const SubwordVocabulary& vocabulary() {
  static const SubwordVocabulary learned = [] {
    SubwordCounts counts;
    for (const std::string& line : subword_lines(400)) counts.add_line(line);
    return SubwordVocabulary(BytePairs(BytePairs::learn(counts, 340), "learned"), counts.hash());
  }();
  return learned;
}

std::string piece_of(std::int32_t id) { return vocabulary().model()[id].bytes; }

}  // namespace

TEST_CASE("base64: the examples of RFC 4648, and nothing else is read", "[data]") {
  const std::string whole = "foobar";
  const std::array<std::string, 7> written{"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    CHECK(base64_text(whole.substr(0, length)) == written.at(length));
    CHECK(parse_base64(written.at(length)) == whole.substr(0, length));
  }
  std::string all;
  for (int byte = 0; byte < 256; ++byte) all += static_cast<char>(byte);
  CHECK(parse_base64(base64_text(all)) == all);
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zh==", "Zg==Zg==", "Z@==", "Zm9v\n"}) CHECK_FALSE(parse_base64(wrong));
}

TEST_CASE("pieces of UTF-8: characters come whole wherever the bytes are cut", "[data]") {
  const std::string text = "aé\u2581z\U0001F600\u00e4";
  for (std::size_t first = 0; first <= text.size(); ++first)
    for (std::size_t second = first; second <= text.size(); ++second) {
      Utf8Pieces pieces;
      std::string shown;
      for (const std::string& part : {text.substr(0, first), text.substr(first, second - first), text.substr(second)}) {
        const std::string complete = pieces.add(part);
        CHECK(find_invalid_utf8(complete) == complete.size());
        shown += complete;
      }
      CHECK(shown + pieces.finish() == text);
    }
  const auto shown = [](std::string_view bytes) {
    Utf8Pieces pieces;
    std::string out;
    for (const char byte : bytes) out += pieces.add(std::string(1, byte));
    return out + pieces.finish();
  };
  CHECK(shown("a\xff"
              "b") ==
        "a\ufffd"
        "b");
  CHECK(shown("\xe2\x96") == "\ufffd");
  CHECK(shown("\xe2\x96x") == "\ufffd\ufffdx");
  CHECK(shown("\xed\xa0\x80") == "\ufffd\ufffd\ufffd");  // a surrogate
  CHECK(shown("\xc0z") == "\ufffdz");
  CHECK(shown("\xf0\x9f\x98") == "\ufffd");
}

TEST_CASE("subword counts: words with the space before them, without what is not learned", "[data]") {
  SubwordCounts counts;
  counts.add_line(" a  bb\tc a");
  counts.add_line("c\u2581 a\u2585");
  counts.add_line("");
  counts.add_line(std::string("\0x", 2));
  std::vector<std::pair<std::string, std::int64_t>> found;
  for (std::int64_t i = 0; i < counts.size(); ++i) found.emplace_back(counts.word(i), counts.count(i));
  CHECK(found ==
        std::vector<std::pair<std::string, std::int64_t>>{{" a", 3}, {" ", 1}, {" bb", 1}, {"c", 2}, {"x", 1}});
  CHECK(counts.letters() == 5);

  SubwordCounts longer;
  std::string word;
  for (int i = 0; i < 1000; ++i) word += "é\U0001F600";
  longer.add_line(word);
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < longer.size(); ++i) {
    CHECK(longer.word(i).size() <= SubwordCounts::kLongest);
    CHECK(find_invalid_utf8(longer.word(i)) == longer.word(i).size());
    bytes += longer.count(i) * std::ssize(longer.word(i));
  }
  CHECK(bytes == std::ssize(word));
  CHECK(longer.letters() == 2);
  CHECK(longer.hash() != counts.hash());
}

TEST_CASE("byte pairs: what is learned", "[data]") {
  const SubwordModel& model = vocabulary().model();
  CHECK(model.size() == 340);
  CHECK(model.has_bytes());
  CHECK(model.splits_at_spaces());
  CHECK_FALSE(model.adds_space());
  CHECK(model.end_token() == 1);
  CHECK(model[0].role == Subword::Role::unknown);
  CHECK(model[1].role == Subword::Role::mark);
  for (int byte = 0; byte < 256; ++byte) {
    CHECK(model[2 + byte].role == Subword::Role::byte);
    CHECK(model[2 + byte].bytes == std::string(1, static_cast<char>(byte)));
  }
  for (std::int32_t id = 258; id < 340; ++id) CHECK(model[id].role == Subword::Role::text);
  // The most frequent words of the text are one subword each, with their space.
  const std::vector<std::int32_t> ids = vocabulary().encode("stone river stone\n");
  REQUIRE(ids.size() >= 4);
  CHECK(piece_of(ids[ids.size() - 2]) == " stone");
  CHECK(ids.back() == model.end_token());
  // What the text lacks is written in bytes.
  const std::vector<std::int32_t> foreign = vocabulary().encode("\u20ac");
  CHECK(foreign == std::vector<std::int32_t>{2 + 0xe2, 2 + 0x82, 2 + 0xac});
}

TEST_CASE("byte pairs: one pair is joined after the other, the most frequent first", "[data]") {
  // Sennrich et al. 2016, algorithm 1, by hand: "ab" 5 times, then "abc" 3 times; x and y only once together.
  SubwordCounts counts;
  for (const char* line : {"abc", "abc", "abc", "ab", "ab", "xy"}) counts.add_line(line);
  const BytePairs model(BytePairs::learn(counts, 258 + 5 + 2), "learned");
  CHECK(model[258].bytes == "ab");
  CHECK(model[259].bytes == "abc");
  std::vector<std::int32_t> ids;
  model.encode("abcxy", ids);
  REQUIRE(ids.size() == 3);
  CHECK(ids[0] == 259);
}

TEST_CASE("byte pairs: sizes that do not work name the ones that do", "[data]") {
  SubwordCounts counts;
  for (const char* line : {"aab ab", "abc"}) counts.add_line(line);
  const auto error = [&](std::int64_t size) { return message_of<UsageError>([&] { BytePairs::learn(counts, size); }); };
  CHECK_THAT(error(261),
             ContainsSubstring("--vocabulary must be at least 262 for this text (4 different characters, 256 bytes "
                               "and 2 marks), got 261"));
  CHECK(BytePairs(BytePairs::learn(counts, 262), "learned").size() == 262);
  const std::string large = error(5000);
  CHECK_THAT(large, ContainsSubstring("--vocabulary must be at most ") && ContainsSubstring("no more pairs") &&
                        ContainsSubstring("got 5000"));
  const std::int64_t most = std::stoll(large.substr(large.find("at most ") + 8));
  CHECK(BytePairs(BytePairs::learn(counts, most), "learned").size() == most);
  // Far more than the library's numbers hold.
  for (const std::int64_t size : {most + 1, std::int64_t{2'000'000'000}, std::int64_t{99'999'999'999'999}})
    CHECK_THAT(error(size), ContainsSubstring("at most " + std::to_string(most)) &&
                                ContainsSubstring("got " + std::to_string(size)));
  CHECK_THAT(message_of<UsageError>([] { BytePairs::learn(SubwordCounts(), 300); }),
             ContainsSubstring("letters to learn from"));
}

TEST_CASE("byte pairs: learning depends on words and counts alone", "[data]") {
  SubwordCounts forwards, backwards;
  const std::vector<std::string> lines = subword_lines(200);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    forwards.add_line(lines[i]);
    backwards.add_line(lines[lines.size() - 1 - i]);
  }
  CHECK(BytePairs::learn(forwards, 320) == BytePairs::learn(backwards, 320));
  CHECK(BytePairs::learn(forwards, 320) == BytePairs::learn(forwards, 320));
  CHECK(BytePairs::learn(forwards, 320) != BytePairs::learn(forwards, 319));
}

TEST_CASE("subwords: every text comes back byte for byte", "[data]") {
  const std::vector<std::string> texts{"",
                                       "\n",
                                       "\n\n\n",
                                       "stone",
                                       "stone\n",
                                       " ",
                                       "  stone  \n",
                                       "\tstone\t\triver",
                                       "a\r\nb\r\n\r",
                                       "\r",
                                       "<eos>\n",
                                       "<unk><0x41>",
                                       "\u2581",
                                       "\u2581stone \u2581\u2581 ",
                                       "\u2585\n",
                                       "\ufeffstone",
                                       "\ufffd",
                                       "\u0085\u2028\u3000",
                                       std::string("\0\0a\0\n", 5)};
  for (const std::string& text : texts) {
    CAPTURE(text);
    const std::vector<std::int32_t> ids = vocabulary().encode(text);
    CHECK(vocabulary().decode(ids) == text);
    CHECK(std::ranges::count(ids, vocabulary().end_token()) == std::ranges::count(text, '\n'));
    CHECK(std::ranges::count(ids, 0) == 0);
  }
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::string text = random_unicode(seed, 300);
    REQUIRE(find_invalid_utf8(text) == text.size());
    CHECK(vocabulary().decode(vocabulary().encode(text)) == text);
  }
  const std::string endless(200'001, 'e');  // longer than any word that is encoded at once
  CHECK(vocabulary().decode(vocabulary().encode(endless)) == endless);
  CHECK_THAT(message_of<UsageError>([] { vocabulary().encode("ab\xff"); }),
             ContainsSubstring("UTF-8") && ContainsSubstring("at byte 2"));
  CHECK_THAT(message_of<UsageError>([] {
               vocabulary().decode(std::array<std::int32_t, 2>{5, 340});
             }),
             ContainsSubstring("from 0 to 339, got 340 at position 1"));
}

TEST_CASE("subwords: a line and its words have the same ids", "[data]") {
  SubwordEncoder encoder(vocabulary().model());
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::string line = seed % 2 == 0 ? random_unicode(seed, 200) : subword_lines(40).at(seed);
    std::erase(line, '\n');
    std::vector<std::int32_t> whole, by_words, again;
    vocabulary().model().encode(line, whole);
    encoder.encode(line, by_words);
    encoder.encode(line, again);
    CHECK(by_words == whole);
    CHECK(again == whole);
  }
  CHECK(encoder.altered() == 0);
}

TEST_CASE("subwords: the vocabulary's files", "[data]") {
  TemporaryFolder folder;
  const Vocabulary either(vocabulary());
  CHECK(either.kind() == TokenKind::subword);
  CHECK(either.size() == 340);
  CHECK_FALSE(either.find_unknown("anything \u20ac\n"));
  CHECK(either.find_unknown("ab\xff")->at == 2);

  const Vocabulary inside = Vocabulary::parse(either.json_text(), "a checkpoint");
  CHECK(inside.hash() == either.hash());
  CHECK(inside.source_hash() == either.source_hash());
  CHECK(inside.json_text() == either.json_text());
  CHECK(inside.encode("the stone\n") == either.encode("the stone\n"));

  const auto path = put_file(folder / "vocabulary.json", either.folder_json_text());
  const std::string model = vocabulary().model().model();
  CHECK_THAT(message_of<FileError>([&] { Vocabulary::load(path); }),
             ContainsSubstring("vocabulary.model") && ContainsSubstring("got no such file\n  prepare the data again"));
  put_file(folder / kModelFile, model);
  CHECK(Vocabulary::load(path).hash() == either.hash());
  for (const std::size_t at : {std::size_t{0}, model.size() / 2, model.size() - 1}) {
    std::string damaged = model;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    put_file(folder / kModelFile, damaged);
    CHECK_THAT(message_of<FileError>([&] { Vocabulary::load(path); }),
               ContainsSubstring("vocabulary.model") && ContainsSubstring("prepare the data again"));
  }
  put_file(folder / kModelFile, model.substr(0, 100));
  CHECK_THAT(message_of<FileError>([&] { Vocabulary::load(path); }), ContainsSubstring("one of 100 bytes"));

  nlohmann::json json = nlohmann::json::parse(either.json_text());
  json["model"] = "no base64!";
  CHECK_THAT(message_of<FileError>([&] { Vocabulary::parse(json.dump(), "c"); }), ContainsSubstring("base64"));
  json["model"] = base64_text("other bytes");
  CHECK_THAT(message_of<FileError>([&] { Vocabulary::parse(json.dump(), "c"); }), ContainsSubstring("in the place of"));
  json.erase("hash");
  CHECK_THAT(message_of<FileError>([&] { Vocabulary::parse(json.dump(), "c"); }),
             ContainsSubstring("prepare the data again"));
  CHECK_THAT(message_of<FileError>([] { BytePairs("no model", "some.file"); }),
             ContainsSubstring("'some.file' must be a model of SentencePiece"));
  CHECK_THAT(message_of<FileError>([] { BytePairs("", "some.file"); }), ContainsSubstring("an empty file"));
  // "<unk>" and a piece of a zero and an "a": the library throws what is no status. Found by fuzzing.
  const std::string zero("\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x04\x0a\x02\0a", 17);
  CHECK_THAT(message_of<FileError>([&] { BytePairs(zero, "some.file"); }),
             ContainsSubstring("must be a model of SentencePiece, got one that it refuses") &&
                 ContainsSubstring("zero-length key"));
  // A piece that says it has 50,000,000 bytes, in a list of pieces and in a test of its own.
  for (const std::string& beyond :
       {std::string("\x0a\x07\x0a\x80\xe1\xeb\x17xy", 9), std::string("\x22\x09\x0a\x07\x0a\x80\xe1\xeb\x17xy", 11)})
    CHECK_THAT(message_of<FileError>([&] { BytePairs(beyond, "some.file"); }),
               ContainsSubstring("got one with a length beyond its end"));
}

}  // namespace engram::harness::subwords_test
