#include "apps/data/vocabulary/vocabulary.hpp"
#include "apps/data/files/hash.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::vocabulary_test {

using namespace engram::data;

namespace {

Vocabulary vocabulary_of(const std::string& train, TextRule rule = TextRule::any, bool exact_bytes = false) {
  const std::string rest = rule == TextRule::text8 ? "a" : "a\n";
  return ByteVocabulary::collect(splits_of_files({{{"a", train}, {"b", rest}, {"c", rest}}}, rule, exact_bytes),
                                 VocabularyFrom::train);
}

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("hash: the published values of FNV-1a", "[data]") {
  CHECK(hash_of("") == 0xcbf29ce484222325u);
  CHECK(hash_of("a") == 0xaf63dc4c8601ec8cu);
  CHECK(hash_of("foobar") == 0x85944171f73967e8u);
  CHECK(hash_text(0x85944171f73967e8u) == "fnv1a64:85944171f73967e8");
  CHECK(parse_hash("fnv1a64:85944171f73967e8") == 0x85944171f73967e8u);
  for (const char* wrong :
       {"", "fnv1a64:", "fnv1a64:85944171f73967eX", "fnv1a64:85944171f73967e80", "sha1234:85944171f73967e8"})
    CHECK_FALSE(parse_hash(wrong).has_value());
}

TEST_CASE("vocabulary: ids go by first appearance in train", "[data]") {
  const Vocabulary vocabulary = vocabulary_of("bab\ncab\n");
  CHECK(vocabulary.size() == 4);
  CHECK(vocabulary.end_token() == 2);
  CHECK(vocabulary.encode("bac\n") == Ids{0, 1, 3, 2});
  CHECK(vocabulary.decode(Ids{3, 1, 0, 2}) == "cab\n");

  // The end token that is appended is met last.
  CHECK(vocabulary_of("a\nb", TextRule::any, false).end_token() == 1);
  CHECK(vocabulary_of("ab", TextRule::any, true).end_token() == -1);
  CHECK(vocabulary_of("ab", TextRule::any, true).size() == 2);
}

TEST_CASE("vocabulary: all 256 bytes have ids and come back", "[data]") {
  std::string bytes;
  for (int value = 255; value >= 0; --value) bytes += static_cast<char>(value);
  const Vocabulary vocabulary = vocabulary_of(bytes + bytes);
  CHECK(vocabulary.size() == 256);
  const Ids ids = vocabulary.encode(bytes);
  CHECK(ids.front() == 0);
  CHECK(ids.back() == 255);
  CHECK(vocabulary.decode(ids) == bytes);
}

TEST_CASE("vocabulary: text8 shows '_' as a space, and no '_' exists beside it", "[data]") {
  const Vocabulary vocabulary = vocabulary_of("the quick brown fox jumps over the lazy dog", TextRule::text8);
  CHECK(vocabulary.size() == 28);
  CHECK(vocabulary.end_token() == 27);
  CHECK(vocabulary.encode("t he") == Ids{0, 3, 1, 2});
  CHECK(vocabulary.decode(Ids{0, 3, 1, 2, 27}) == "t he\n");
  CHECK_THAT(vocabulary.json_text(), ContainsSubstring("[116,104,101,95,"));
  CHECK_THAT(message_of<UsageError>([&] { vocabulary.encode("the_quick"); }),
             ContainsSubstring("'_' (0x5f) at byte 3"));
}

TEST_CASE("vocabulary: the hash tells vocabularies apart and nothing else", "[data]") {
  const std::uint64_t hash = vocabulary_of("bab\ncab\n").hash();
  CHECK(vocabulary_of("ba\ncccccc\n").hash() == hash);
  CHECK(vocabulary_of("ba\ncccccc\n").source_hash() != vocabulary_of("bab\ncab\n").source_hash());
  CHECK(vocabulary_of("abb\ncab\n").hash() != hash);
  CHECK(vocabulary_of("bab\ncabd\n").hash() != hash);
  // The same letters, but the space is another character.
  CHECK(vocabulary_of("a b", TextRule::text8).hash() != vocabulary_of("a_b\n\n", TextRule::any).hash());
}

TEST_CASE("vocabulary: the file comes back whole", "[data]") {
  TemporaryFolder folder;
  for (const bool text8 : {false, true}) {
    const Vocabulary vocabulary = text8 ? vocabulary_of("b a", TextRule::text8) : vocabulary_of("b a\nxyz\n\x80\xff");
    const Vocabulary loaded = Vocabulary::load(put_file(folder / "v.json", vocabulary.json_text()));
    CHECK(loaded.hash() == vocabulary.hash());
    CHECK(loaded.source_hash() == vocabulary.source_hash());
    CHECK(loaded.size() == vocabulary.size());
    CHECK(loaded.end_token() == vocabulary.end_token());
    CHECK(loaded.encode("a b") == vocabulary.encode("a b"));
    CHECK(loaded.json_text() == vocabulary.json_text());
  }
}

TEST_CASE("vocabulary: errors of encoding and decoding", "[data]") {
  const Vocabulary vocabulary = vocabulary_of("ab\nab\n");
  CHECK_THAT(message_of<UsageError>([&] { vocabulary.encode("abxa"); }),
             ContainsSubstring("one of the 3 that the vocabulary has, got 'x' (0x78) at byte 2"));
  CHECK_THAT(message_of<UsageError>([&] { vocabulary.encode("\x80"); }), ContainsSubstring("got 0x80 at byte 0"));
  CHECK_THAT(message_of<UsageError>([&] {
               vocabulary.decode(Ids{0, 3});
             }),
             ContainsSubstring("from 0 to 2, got 3 at position 1"));
  CHECK_THAT(message_of<UsageError>([&] { vocabulary.decode(Ids{-1}); }), ContainsSubstring("got -1 at position 0"));
}

TEST_CASE("vocabulary: damaged files are refused", "[data]") {
  TemporaryFolder folder;
  const std::string good = vocabulary_of("ab\nab\n").json_text();
  const auto load = [&](const std::string& contents) {
    return message_of<FileError>([&] { Vocabulary::load(put_file(folder / "v.json", contents)); });
  };
  const auto with = [&](const std::string& from, const std::string& to) {
    REQUIRE(good.find(from) != std::string::npos);
    return load(std::string(good).replace(good.find(from), from.size(), to));
  };
  CHECK(load(good).empty());
  // The last byte of the file is a newline after the object.
  for (std::size_t length = 0; length + 1 < good.size(); ++length) {
    CAPTURE(length);
    CHECK_THAT(load(good.substr(0, length)), ContainsSubstring("must be a JSON object"));
  }
  CHECK_THAT(with("[97,98,10]", "[97,98,11]"), ContainsSubstring("got the hash"));
  CHECK_THAT(with("[97,98,10]", "[98,97,10]"), ContainsSubstring("got the hash"));
  CHECK_THAT(with("[97,98,10]", "[97,97,10]"), ContainsSubstring("got 97 twice"));
  CHECK_THAT(with("[97,98,10]", "[97,256]"), ContainsSubstring("got the entry 256"));
  CHECK_THAT(with("[97,98,10]", "[-1]"), ContainsSubstring("got the entry -1"));
  CHECK_THAT(with("[97,98,10]", "[]"), ContainsSubstring("got none"));
  CHECK_THAT(with("[97,98,10]", "\"ab\""), ContainsSubstring("got this: "));
  CHECK_THAT(with("\"space_is_underscore\":false", "\"space_is_underscore\":true"), ContainsSubstring("got the hash"));
  CHECK_THAT(with("\"source_hash\":\"fnv1a64", "\"source_hash\":\"x"), ContainsSubstring("got the source hash 'x"));
  CHECK_THAT(with("\"version\":1", "\"version\":2"), ContainsSubstring("must be of version 1, got 2"));
  CHECK_THAT(with("engram character vocabulary", "other"), ContainsSubstring("got \"other\""));
  CHECK_THAT(load("{}"), ContainsSubstring("got none"));
  CHECK_THAT(load("[1]"), ContainsSubstring("must be a JSON object"));
  CHECK_THAT(message_of<FileError>([&] { Vocabulary::load(folder / "none.json"); }),
             ContainsSubstring("none.json") && ContainsSubstring("No such file or directory"));
  CHECK_THAT(message_of<FileError>([&] { Vocabulary::load(folder.path()); }), ContainsSubstring("Is a directory"));
}

}  // namespace engram::harness::vocabulary_test
