/// `engram prepare --kind bpe` from files to a data folder.

#include <map>
#include <string>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/data/text/line_words.hpp"
#include "apps/data/text/streamed_text.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/subword_texts.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

#if __has_include(<sentencepiece_trainer.h>)
#include <sentencepiece_trainer.h>
#endif

namespace engram::harness::prepare_subwords_test {

using namespace engram::data;

namespace {

PrepareOptions options_for(const TemporaryFolder& folder, std::string_view train, std::string_view valid,
                           std::string_view test) {
  PrepareOptions options;
  options.kind = TokenKind::subword;
  options.subwords.vocabulary = 320;
  options.train = put_file(folder / "train.txt", train);
  options.valid = put_file(folder / "valid.txt", valid);
  options.test = put_file(folder / "test.txt", test);
  options.out = folder / "data";
  return options;
}

PrepareOptions options_for(const TemporaryFolder& folder, std::string_view text) {
  PrepareOptions options;
  options.kind = TokenKind::subword;
  options.subwords.vocabulary = 320;
  options.text = put_file(folder / "source.txt", text);
  options.out = folder / "data";
  return options;
}

std::vector<std::int32_t> ids_of(const DataSet& data, std::string_view split) {
  const TokenView tokens = data.split(split);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), ids.data());
  return ids;
}

std::string decode(const DataSet& data, std::string_view split) {
  return data.vocabulary().decode(ids_of(data, split));
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

TEST_CASE("prepare subwords: a byte order mark stays, and is told of", "[data]") {
  TemporaryFolder folder;
  const std::string train = "\xef\xbb\xbf" + subword_text(300), valid = "a b\n";
  const PrepareOptions options = options_for(folder, train, valid, valid);
  const PrepareSummary summary = prepare(options);
  REQUIRE(summary.notes.size() == 1);
  CHECK_THAT(summary.notes[0], ContainsSubstring("begins with a byte order mark, which stays a part of the text"));
  CHECK(decode(DataSet::open(options.out), "train") == train);
}

TEST_CASE("prepare subwords: folders in a folder are told of", "[data]") {
  TemporaryFolder folder;
  std::filesystem::create_directories(folder / "texts/inner");
  std::filesystem::create_directories(folder / "texts/.hidden");
  put_file(folder / "texts/a.txt", subword_text(300));
  put_file(folder / "texts/inner/b.txt", "not read\n");
  PrepareOptions options = options_for(folder, "", "a b\n", "a b\n");
  options.train = folder / "texts";
  const PrepareSummary summary = prepare(options);
  REQUIRE(summary.notes.size() == 1);
  CHECK_THAT(summary.notes[0],
             ContainsSubstring("a folder in '") && ContainsSubstring("texts' and what is in it was not read"));
}

TEST_CASE("prepare subwords: three files come back byte for byte", "[data]") {
  TemporaryFolder folder;
  const std::string train = subword_text(300), valid = random_unicode(5, 400) + "end", test = "\r\n\n\tstone  river \n";
  const PrepareOptions options = options_for(folder, train, valid, test);
  const PrepareSummary summary = prepare(options);
  CHECK(summary.kind == TokenKind::subword);
  CHECK(summary.vocabulary_size == 320);
  CHECK(summary.notes.empty());
  CHECK_FALSE(summary.splits[0].end_appended);
  CHECK(summary.splits[1].end_appended);
  CHECK(summary.splits[0].bytes == std::ssize(train));
  CHECK(summary.splits[1].bytes == std::ssize(valid));
  CHECK(summary.splits[0].words == count_words(train));
  CHECK(summary.splits[2].words == 2);

  const DataSet data = DataSet::open(options.out);
  CHECK(data.kind() == TokenKind::subword);
  CHECK(data.rule() == "any");
  CHECK(decode(data, "train") == train);
  CHECK(decode(data, "valid") == valid + "\n");
  CHECK(decode(data, "test") == test);
  CHECK(ids_of(data, "train") == data.vocabulary().encode(train));
  CHECK(data.split("train").size() == summary.splits[0].tokens);
  CHECK(data.split("train").size() < summary.splits[0].bytes / 2);
  CHECK(data.split("train").width() == 2);
  CHECK(data.text_amount("train")->words == summary.splits[0].words);
  CHECK(data.text_amount("train")->bytes == std::ssize(train));

  CHECK(contents(options.out).size() == 6);
  const nlohmann::json json = nlohmann::json::parse(get_file(options.out / "data.json"));
  CHECK(json["kind"] == "bpe");
  CHECK(json["vocabulary_size"] == 320);
  CHECK(json["bpe_sample"] == SubwordRules::kUsualSample);
  CHECK(json["splits"]["test"]["words"] == 2);
  CHECK(json["splits"]["test"]["altered"] == 0);
  CHECK(json["sources"][2]["hash"] == hash_text(hash_of(test)));
  CHECK_FALSE(json.contains("eol"));
  CHECK_FALSE(json.contains("newlines"));
}

TEST_CASE("prepare subwords: the same text gives the same bytes", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, subword_text(400));
  prepare(options);
  const auto first = contents(options.out);
  prepare(options);
  CHECK(contents(options.out) == first);
  options.out = folder / "elsewhere";
  prepare(options);
  CHECK(contents(options.out) == first);
}

TEST_CASE("prepare subwords: one text is cut at line ends, and the model is learned from train", "[data]") {
  TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 10; ++i) text += i < 6 ? "aab\rcd ef\n" : "xyz xyz x\n";
  REQUIRE(text.size() == 100);
  PrepareOptions options = options_for(folder, text);
  options.split = Percentages{55, 25, 20};
  options.subwords.vocabulary = 270;
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].bytes == 60);
  CHECK(summary.splits[1].first_byte == 60);
  CHECK(summary.splits[1].bytes == 20);
  CHECK(summary.splits[2].first_byte == 80);
  CHECK(summary.splits[2].words == 6);
  const DataSet data = DataSet::open(options.out);
  CHECK(decode(data, "train") + decode(data, "valid") + decode(data, "test") == text);
  // train has no x: the model writes it in a byte.
  CHECK(data.vocabulary().encode("x") == std::vector<std::int32_t>{2 + 'x'});
  CHECK(data.vocabulary().encode("a").at(0) > 257);
}

TEST_CASE("prepare subwords: texts of many pieces, and lines longer than one", "[data]") {
  TemporaryFolder folder;
  std::string text;
  const std::string lines = subword_text(500);
  while (text.size() < 2'500'000) text += lines;
  text += std::string(1'500'000, 'o') + " ";  // with the next, a line of more than two pieces
  while (text.size() < 5'000'000) text += "stone ";
  text += "\n" + lines + "last";
  PrepareOptions options = options_for(folder, text);
  options.split = Percentages{20, 70, 10};  // the second cut is inside the long line
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[2].bytes == std::ssize(lines) + 4);
  CHECK(summary.splits[0].bytes + summary.splits[1].bytes + summary.splits[2].bytes == std::ssize(text));
  CHECK(summary.splits[0].words + summary.splits[1].words + summary.splits[2].words == count_words(text));
  const DataSet data = DataSet::open(options.out);
  CHECK((decode(data, "train") + decode(data, "valid") + decode(data, "test") == text + "\n"));
}

TEST_CASE("streamed text: lines of each split, and a file that changes", "[data]") {
  TemporaryFolder folder;
  const auto path = put_file(folder / "text", "one\n\nthree\nfour\nfive");
  const StreamedText text(path, {40, 30, 30});
  std::vector<std::string> lines;
  for (std::size_t split = 0; split < 3; ++split) {
    text.read_lines(split, [&](std::string_view line) { lines.emplace_back(line); });
    lines.push_back("|");
  }
  // 20 bytes, cut at 8 and 14, both moved on to the next line start.
  CHECK(lines == std::vector<std::string>{"one", "", "three", "|", "four", "|", "five", "|"});
  CHECK(text.splits()[2].end_missing);
  put_file(path, "one\n\nthrEe\nfour\nfive");
  CHECK_THAT(message_of<FileError>([&] {
               for (std::size_t split = 0; split < 3; ++split) text.read_lines(split, [](std::string_view) {});
             }),
             ContainsSubstring("must not change while it is read"));
}

TEST_CASE("prepare subwords: a sample of train is spread over it", "[data]") {
  TemporaryFolder folder;
  std::string train;
  for (int i = 0; i < 1000; ++i) train += i < 500 ? "aaaa bb\n" : "cccc dd\n";
  PrepareOptions options = options_for(folder, train, "cccc\n", "bb\n");
  options.subwords.vocabulary = 267;
  options.subwords.sample = 800;
  const PrepareSummary summary = prepare(options);
  REQUIRE(summary.notes.size() == 1);
  CHECK_THAT(summary.notes[0], ContainsSubstring("learned from 800 of the 8000 bytes of train"));
  // Letters of both halves are known, and one in ten lines was read.
  const DataSet data = DataSet::open(options.out);
  CHECK(data.vocabulary().encode("ac").size() == 2);
  CHECK(data.vocabulary().encode("a").at(0) > 257);
  CHECK(data.vocabulary().encode("c").at(0) > 257);
  CHECK(decode(data, "train") == train);
  options.subwords.sample = 8000;
  CHECK(prepare(options).notes.empty());
}

TEST_CASE("prepare subwords: what is refused", "[data]") {
  TemporaryFolder folder;
  const PrepareOptions good = options_for(folder, subword_text(200));
  PrepareOptions options = good;
  options.subwords.vocabulary = 257;
  CHECK_THAT(prepare_error<UsageError>(options),
             ContainsSubstring("--vocabulary must be at least ") && ContainsSubstring("got 257"));
  options.subwords.vocabulary.reset();  // the usual 8000
  const std::string large = prepare_error<UsageError>(options);
  CHECK_THAT(large, ContainsSubstring("--vocabulary must be at most ") && ContainsSubstring("got 8000"));
  CHECK_FALSE(std::filesystem::exists(options.out));
  options.subwords.vocabulary = std::stoll(large.substr(large.find("at most ") + 8));
  CHECK(prepare(options).vocabulary_size == *options.subwords.vocabulary);

  options = good;
  options.subwords.sample = 0;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--bpe-sample must be at least 1, got 0"));
  options = good;
  options.subwords.model = "x";
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--bpe-model is learned already, got --vocabulary"));
  options = good;
  options.drop_newlines = true;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--kind bpe has the options --vocabulary"));
  options = good;
  options.words.lower = true;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("got one of another kind"));
  for (const TokenKind kind : {TokenKind::character, TokenKind::word}) {
    options = good;
    options.kind = kind;
    CHECK_THAT(prepare_error<UsageError>(options),
               ContainsSubstring("--bpe- work with --kind bpe, got them with " + std::string(name_of(kind))));
  }
  options = good;
  put_file(options.text, "stone\nriver \xff\nend\n");
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("UTF-8, got 0xff at byte 12 in line 2 of '"));
  put_file(options.text, "");
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("must not be empty"));
  put_file(options.text, "all in one line");
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("every split needs text, got none for valid"));
  put_file(options.text, "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n");
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("must have letters to learn from"));
  // It is the sample that has no more pairs, not the text.
  put_file(options.text, subword_text(200));
  options.subwords.sample = 1;
  options.subwords.vocabulary = 2000;
  CHECK_THAT(prepare_error<UsageError>(options), ContainsSubstring("--vocabulary must be at most ") &&
                                                     ContainsSubstring("\n  pairs were learned from ") &&
                                                     ContainsSubstring("a larger --bpe-sample has more"));
  options.subwords = good.subwords;
  options.text = folder / "none.txt";
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("No such file"));
  options.text = folder.path();
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("directory"));
  options.text = "/dev/null";
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("read more than once, so it must be a file"));
}

TEST_CASE("prepare subwords: a model that there is already", "[data]") {
  TemporaryFolder folder;
  const PrepareOptions learned = options_for(folder, subword_text(200));
  prepare(learned);
  PrepareOptions options = learned;
  options.out = folder / "other";
  options.text = put_file(folder / "other.txt", "river\nstone river\nstone\nlight \u20ac\nstone\n");
  options.split = Percentages{40, 30, 30};
  options.subwords = {.vocabulary = {}, .sample = {}, .model = learned.out / kModelFile};
  prepare(options);
  const DataSet first = DataSet::open(learned.out), second = DataSet::open(options.out);
  CHECK(first.vocabulary().hash() == second.vocabulary().hash());
  CHECK_NOTHROW(second.require_vocabulary(first.vocabulary().hash(), "the first"));
  CHECK(decode(second, "train") + decode(second, "valid") + decode(second, "test") == get_file(options.text));
  CHECK(get_file(options.out / kModelFile) == get_file(learned.out / kModelFile));
  options.subwords.model = options.text;
  CHECK_THAT(prepare_error<FileError>(options), ContainsSubstring("other.txt' must be a model of SentencePiece"));

  // A data folder whose model is damaged is refused; one of another kind loses it.
  std::string model = get_file(learned.out / kModelFile);
  model.back() = static_cast<char>(model.back() ^ 1);
  put_file(learned.out / kModelFile, model);
  CHECK_THAT(message_of<FileError>([&] { DataSet::open(learned.out); }), ContainsSubstring("vocabulary.model"));
  std::filesystem::remove(learned.out / kModelFile);
  CHECK_THAT(message_of<FileError>([&] { DataSet::open(learned.out); }), ContainsSubstring("vocabulary.model"));
  options = options_for(folder, "ab\nab\nab\nab\nab\nab\nab\nab\n");
  options.kind = TokenKind::character;
  options.subwords = {};
  options.split = Percentages{50, 25, 25};
  options.out = folder / "other";
  prepare(options);
  CHECK(contents(options.out).size() == 5);
  CHECK(DataSet::open(options.out).kind() == TokenKind::character);
}

#if __has_include(<sentencepiece_trainer.h>)
TEST_CASE("prepare subwords: a model of another program may change the text", "[data]") {
  // The library's own settings: spaces in a row are one, each line begins with one, capitals of full width become
  // plain ones, and a letter that was not learned is unknown.
  TemporaryFolder folder;
  const PrepareOptions base = options_for(folder, "stone  river\nstone\n", "stone \u20ac\n", "\uff21 stone\n");
  put_file(folder / "learn.txt", subword_text(300) + "A A A A\n");
  const auto status = sentencepiece::SentencePieceTrainer::Train({{"input", (folder / "learn.txt").string()},
                                                                  {"model_prefix", (folder / "foreign").string()},
                                                                  {"model_type", "unigram"},
                                                                  {"vocab_size", "40"},
                                                                  {"hard_vocab_limit", "false"},
                                                                  {"minloglevel", "2"}});
  REQUIRE(status.ok());
  PrepareOptions options = base;
  options.subwords = {.vocabulary = {}, .sample = {}, .model = folder / "foreign.model"};
  const PrepareSummary summary = prepare(options);
  const DataSet data = DataSet::open(options.out);
  CHECK(data.vocabulary().subwords()->model().adds_space());
  CHECK_FALSE(data.vocabulary().subwords()->model().splits_at_spaces());
  CHECK(decode(data, "train") == "stone river\nstone\n");
  CHECK(decode(data, "valid") == "stone \ufffd\n");
  CHECK(decode(data, "test") == "A stone\n");
  CHECK(summary.splits[0].altered == 1);
  CHECK(summary.splits[1].unknown == 1);
  CHECK(summary.splits[2].altered == 1);
  REQUIRE(summary.notes.size() == 1);
  CHECK_THAT(summary.notes[0], ContainsSubstring("does not keep 3 lines as they are"));
  CHECK(data.text_amount("train")->words == 3);
  CHECK(data.text_amount("train")->bytes == 0);
}
#endif

TEST_CASE("text amounts: words of every kind, bytes where nothing is left out", "[data]") {
  TemporaryFolder folder;
  PrepareOptions options = options_for(folder, "a b\nc  a\n", "a b\n", "b c\n");
  options.subwords = {};
  options.kind = TokenKind::character;
  prepare(options);
  CHECK(DataSet::open(options.out).text_amount("train")->words == 4);
  CHECK(DataSet::open(options.out).text_amount("train")->bytes == 9);
  options.drop_newlines = true;
  prepare(options);
  CHECK(DataSet::open(options.out).text_amount("train")->bytes == 0);
  options.drop_newlines = false;
  options.kind = TokenKind::word;
  prepare(options);
  CHECK(DataSet::open(options.out).text_amount("train")->words == 4);
  CHECK(DataSet::open(options.out).text_amount("train")->bytes == 9);
  options.words.lower = true;
  prepare(options);
  CHECK(DataSet::open(options.out).text_amount("train")->bytes == 0);
  options.words = {.unseen = UnseenWords::unk};
  put_file(options.valid, "a x\n");
  prepare(options);
  CHECK(DataSet::open(options.out).text_amount("train")->bytes == 9);
  CHECK(DataSet::open(options.out).text_amount("valid")->bytes == 0);
  CHECK(DataSet::open(options.out).text_amount("valid")->words == 2);
  // Data of an older version say nothing about words.
  nlohmann::json json = nlohmann::json::parse(get_file(options.out / "data.json"));
  for (auto& split : json["splits"]) split.erase("words");
  put_file(options.out / "data.json", json.dump());
  CHECK_FALSE(DataSet::open(options.out).text_amount("train"));
}

}  // namespace engram::harness::prepare_subwords_test
