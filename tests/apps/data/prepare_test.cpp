#include <map>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::prepare_test {

using namespace engram::data;

namespace {

const std::string kPattern = "abc de\nfg hi\n";  // 13 bytes, 11 different

std::string repeated(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += kPattern;
  return text.substr(0, bytes);
}

PrepareOptions options_for(const TemporaryFolder& folder, std::string_view text) {
  PrepareOptions options;
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

TEST_CASE("prepare: a text becomes a data folder that opens", "[data]") {
  TemporaryFolder folder;
  const std::string text = repeated(1000);
  PrepareOptions options = options_for(folder, text);
  options.split = Percentages{81, 14, 5};
  const PrepareSummary summary = prepare(options);
  CHECK(summary.vocabulary_size == 11);
  CHECK(summary.notes.empty());
  // 810 and 950 are inside lines, 1000 too.
  CHECK(summary.splits[0].tokens == 811);
  CHECK(summary.splits[1].tokens == 141);
  CHECK(summary.splits[2].tokens == 51);
  CHECK(summary.splits[2].bytes == 50);
  CHECK(summary.splits[2].end_appended);
  CHECK(summary.splits[1].name == "valid");
  CHECK(summary.splits[0].source == options.text.string());

  const DataSet data = DataSet::open(options.out);
  CHECK(data.rule() == "any");
  CHECK(data.vocabulary().hash() == summary.vocabulary_hash);
  CHECK(decode(data, "train") == text.substr(0, 810) + "\n");
  CHECK(decode(data, "valid") == text.substr(810, 140) + "\n");
  CHECK(decode(data, "test") == text.substr(950) + "\n");
  CHECK(data.split("train").width() == 1);
  CHECK(data.split("train")[0] == 0);
  for (std::size_t i = 0; i < 3; ++i) CHECK(data.content_hash(kSplitNames[i]) == summary.splits[i].content_hash);
  CHECK_THAT(message_of<UsageError>([&] { data.split("dev"); }), ContainsSubstring("train, valid or test, got 'dev'"));

  const nlohmann::json json = nlohmann::json::parse(get_file(options.out / "data.json"));
  CHECK(json["kind"] == "char");
  CHECK(json["vocabulary_size"] == 11);
  CHECK(json["splits"]["train"]["tokens"] == 811);
  CHECK(json["splits"]["test"]["first_byte"] == 950);
  CHECK(json["sources"][0]["bytes"] == 1000);
  CHECK(json["sources"][0]["hash"] == hash_text(hash_of(text)));
  CHECK(contents(options.out).size() == 5);
}

TEST_CASE("prepare: lines that end in two characters are said, as each is a token", "[data]") {
  TemporaryFolder folder;
  std::string text;
  while (text.size() < 1000) text += "abc de\r\n";
  PrepareOptions options = options_for(folder, text);
  const PrepareSummary summary = prepare(options);
  CHECK(summary.vocabulary_size == 8);
  REQUIRE(summary.notes.size() == 1);
  CHECK_THAT(summary.notes[0],
             ContainsSubstring("lines of '" + options.text.string() + "' end in carriage return and"));
}

TEST_CASE("prepare: the rules of enwik8 and text8 end to end", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, repeated(13 * 200));  // cuts at 2340 = 13 * 180 and 2470 = 13 * 190
  options.rule = TextRule::enwik8;
  PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].tokens == 2340);
  CHECK(summary.splits[1].tokens == 130);
  CHECK(summary.splits[2].tokens == 130);
  CHECK(summary.notes.size() == 1);
  CHECK(DataSet::open(options.out).rule() == "enwik8");

  options = options_for(
      folder, "the quick brown fox jumps over the lazy dog " + std::string(200, 'a') + " b " + std::string(30, 'c'));
  options.rule = TextRule::text8;
  summary = prepare(options);
  CHECK(summary.vocabulary_size == 28);
  const DataSet data = DataSet::open(options.out);
  CHECK(decode(data, "train").substr(0, 20) == "the quick brown fox ");
  CHECK(decode(data, "test") == std::string(static_cast<std::size_t>(summary.splits[2].bytes), 'c') + "\n");
  CHECK(data.split("train")[3] == 3);
}

TEST_CASE("prepare: three files, exact bytes", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options;
  options.train = put_file(folder / "a", "one\ntwo");
  options.valid = put_file(folder / "b", "two");
  options.test = put_file(folder / "c", "no\n");
  options.out = folder / "deep/er/data";
  CHECK(prepare(options).splits[1].tokens == 4);
  options.exact_bytes = true;
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].tokens == 7);
  CHECK(summary.splits[1].tokens == 3);
  CHECK(decode(DataSet::open(options.out), "valid") == "two");
}

TEST_CASE("prepare: a byte that train lacks is named, or gets an id on request", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, repeated(93) + "Q" + repeated(6));
  const std::string message = prepare_error<FileError>(options);
  CHECK_THAT(message, ContainsSubstring("must occur in train, got 'Q' (0x51) at byte 3 of valid (byte 93 of '") &&
                          ContainsSubstring("source.txt") && ContainsSubstring("--vocabulary-from all"));
  CHECK_FALSE(std::filesystem::exists(options.out));

  options.vocabulary_from = VocabularyFrom::all;
  CHECK(prepare(options).vocabulary_size == 12);
  CHECK(DataSet::open(options.out).split("valid")[3] == 11);

  PrepareOptions files;
  files.train = put_file(folder / "a", "xyz");
  files.valid = put_file(folder / "b", "xx");
  files.test = put_file(folder / "c", "xy\n");
  files.out = options.out;
  files.exact_bytes = true;
  CHECK_THAT(prepare_error<FileError>(files), ContainsSubstring("0x0a at byte 2 of test"));
}

TEST_CASE("prepare: options that are wrong or exclude each other", "[data]") {
  TemporaryFolder folder;
  const PrepareOptions good = options_for(folder, repeated(100));
  PrepareOptions options = good;
  CHECK_THAT(message_of<UsageError>([] { parse_named<TokenKind>("prepare: --kind", "syllable"); }),
             ContainsSubstring("--kind must be char, word or bpe, got 'syllable'"));
  options.words.min_count = 2;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--min-count work with --kind word"));
  options = good;
  options.text.clear();
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("got neither"));
  options.train = good.text;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("given together, got no --valid"));
  options.valid = good.text;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("got no --test"));
  options.test = good.text;
  options.split = kUsualPercentages;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--split works with --text"));
  options.text = good.text;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("got both"));
  options = good;
  options.out.clear();
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--out"));
  options = good;
  options.text = folder / "none.txt";
  CHECK_THAT(prepare_error<FileError>(options),
             ContainsSubstring("none.txt") && ContainsSubstring("No such file or directory"));
  options.text = folder.path();
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("Is a directory"));
  CHECK_FALSE(std::filesystem::exists(good.out));
}

TEST_CASE("prepare: only its own folders are written to", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, repeated(100));
  options.out = folder.path();  // holds source.txt
  CHECK_THAT(prepare_error<FileError>(options),
             ContainsSubstring("a new, an empty or a data folder, got one with 'source.txt'"));
  CHECK(contents(folder.path()).size() == 1);
  // Another program's data.json does not make it ours.
  put_file(folder / "data.json", "{\"format\": \"other\"}");
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("\"format\": \"engram data\", got \"other\""));
  put_file(folder / "data.json", "{\"format\": 5}");
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("\"format\": \"engram data\", got 5"));
  options.out = options.text;
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("must be a folder that can be made or read"));

  options.out = folder / "data";
  std::filesystem::create_directory(options.out);
  prepare(options);
  // Over a data folder that somebody added a note to, and over the rests of a killed preparation.
  put_file(options.out / "README", "mine");
  CHECK_NOTHROW(prepare(options));
  CHECK(get_file(options.out / "README") == "mine");
  std::filesystem::remove(options.out / "README");
  std::filesystem::remove(options.out / "data.json");
  put_file(options.out / "test.tokens.partial", "rest");
  CHECK_NOTHROW(prepare(options));
  CHECK(contents(options.out).size() == 5);
}

TEST_CASE("prepare: a failure leaves the older data set as it was", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, repeated(100));
  prepare(options);
  const auto before = contents(options.out);
  options = options_for(folder, "new\n" + repeated(500));
  SECTION("a text that cannot be used") {
    options = options_for(folder, repeated(99) + "Q");
    CHECK_THROWS_AS(prepare(options), FileError);
  }
  SECTION("no room for a new file, at whichever name") {
    for (const char* name : {"vocabulary.json", "train.tokens", "valid.tokens", "test.tokens", "data.json"}) {
      const auto obstacle = options.out / (std::string(name) + ".partial");
      std::filesystem::create_directory(obstacle);
      CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring(name));
      std::filesystem::remove(obstacle);
      CHECK(contents(options.out) == before);
    }
  }
  CHECK(contents(options.out) == before);
  CHECK_NOTHROW(DataSet::open(options.out));
}

TEST_CASE("data set: missing, mixed and damaged files are named", "[data]") {
  TemporaryFolder folder;
  const PrepareOptions options = options_for(folder, repeated(100));
  prepare(options);
  const auto open_error = [&] { return message_of<FileError>([&] { DataSet::open(options.out); }); };
  CHECK(open_error().empty());

  CHECK_THAT(
      message_of<FileError>([&] { DataSet::open(folder / "none"); }),
      ContainsSubstring("must be a data folder, got nothing of this name") && ContainsSubstring("engram prepare"));
  CHECK_THAT(message_of<FileError>([&] { DataSet::open(options.text); }), ContainsSubstring("got a file"));
  for (const char* name : {"data.json", "vocabulary.json", "train.tokens", "valid.tokens", "test.tokens"}) {
    const std::string bytes = get_file(options.out / name);
    std::filesystem::remove(options.out / name);
    CHECK_THAT(open_error(), ContainsSubstring(std::string("got one without ") + name));
    put_file(options.out / name, "damaged");
    CHECK_THAT(open_error(), ContainsSubstring(name));
    put_file(options.out / name, bytes);
    CHECK(open_error().empty());
  }

  // Files of another preparation: same vocabulary but other tokens, then another vocabulary.
  PrepareOptions longer = options_for(folder, repeated(130));
  longer.out = folder / "longer";
  prepare(longer);
  const std::string train = get_file(options.out / "train.tokens");
  put_file(options.out / "train.tokens", get_file(longer.out / "train.tokens"));
  CHECK_THAT(open_error(), ContainsSubstring("train.tokens' must hold the tokens that data.json states"));
  put_file(options.out / "train.tokens", train);
  CHECK(DataSet::open(options.out).hash() != DataSet::open(longer.out).hash());

  PrepareOptions other = options_for(folder, "Z" + repeated(129));
  other.out = folder / "other";
  prepare(other);
  put_file(options.out / "valid.tokens", get_file(other.out / "valid.tokens"));
  CHECK_THAT(open_error(), ContainsSubstring("valid.tokens' must be of the vocabulary beside it") &&
                               ContainsSubstring("with 11 entries") && ContainsSubstring("with 12"));

  const DataSet data = DataSet::open(other.out);
  CHECK_NOTHROW(data.require_vocabulary(data.vocabulary().hash(), "the checkpoint 'run'"));
  const std::uint64_t foreign = DataSet::open(longer.out).vocabulary().hash();
  CHECK_THAT(message_of<FileError>([&] { data.require_vocabulary(foreign, "the checkpoint 'run'"); }),
             ContainsSubstring("must have the vocabulary of the checkpoint 'run', " + hash_text(foreign)) &&
                 ContainsSubstring("their ids mean different characters"));
}

TEST_CASE("data set: data.json without the hashes is refused", "[data]") {
  TemporaryFolder folder;
  const PrepareOptions options = options_for(folder, repeated(100));
  prepare(options);
  nlohmann::json json = nlohmann::json::parse(get_file(options.out / "data.json"));
  json["splits"].erase("test");
  put_file(options.out / "data.json", json.dump());
  CHECK_THAT(message_of<FileError>([&] { DataSet::open(options.out); }),
             ContainsSubstring("must state the rule and the hash of each split"));
}

TEST_CASE("data set: data.json with numbers that are not those of the files beside it is refused", "[data]") {
  TemporaryFolder folder;
  const PrepareOptions options = options_for(folder, repeated(100));
  prepare(options);
  const nlohmann::json good = nlohmann::json::parse(get_file(options.out / "data.json"));
  const auto refused = [&](const nlohmann::json& json) {
    put_file(options.out / "data.json", json.dump());
    return message_of<FileError>([&] { DataSet::open(options.out); });
  };
  CHECK(refused(good).empty());
  nlohmann::json json = good;
  json["splits"]["train"]["tokens"] = 100'000;
  CHECK_THAT(refused(json),
             ContainsSubstring("must state the number of tokens of train") && ContainsSubstring(", got 100000"));
  json = good;
  json["vocabulary_size"] = 12;
  CHECK_THAT(refused(json), ContainsSubstring("the size of the vocabulary beside it, 11, got 12"));
}

}  // namespace engram::harness::prepare_test
