/// `engram prepare --vocabulary-of`: texts get the ids of a vocabulary that there is already.

#include <memory>
#include <string>

#include "apps/data/data_set.hpp"
#include "apps/data/prepare/prepare.hpp"
#include "apps/data/vocabulary/placeholders.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::given_vocabulary_test {

using namespace engram::data;

namespace {

/// That of a data folder, as the command reads it.
std::shared_ptr<const GivenVocabulary> vocabulary_of(const std::filesystem::path& folder) {
  return std::make_shared<const GivenVocabulary>(
      GivenVocabulary{DataSet::open(folder).vocabulary(), read_text_rules(folder), folder.string()});
}

std::string decoded(const DataSet& data, std::string_view split) {
  const TokenView tokens = data.split(split);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), ids.data());
  return data.vocabulary().decode(ids);
}

/// Data of a model: `text` of the kind, by `rules`.
std::shared_ptr<const GivenVocabulary> model_of(const TemporaryFolder& folder, std::string_view text,
                                                PrepareOptions options) {
  options.out = folder / "model";
  options.train = options.valid = options.test = put_file(folder / "model.txt", text);
  prepare(options);
  return vocabulary_of(options.out);
}

PrepareOptions measured(const TemporaryFolder& folder, std::shared_ptr<const GivenVocabulary> given,
                        std::string_view text) {
  PrepareOptions options;
  options.given = std::move(given);
  options.test = put_file(folder / "text.txt", text);
  options.out = folder / "data";
  return options;
}

std::string refusal(const PrepareOptions& options) {
  std::string message = message_of<Error>([&] { prepare(options); });
  CHECK_FALSE(std::filesystem::exists(options.out / kDataFile));
  return message;
}

}  // namespace

TEST_CASE("given vocabulary: characters have the model's ids, and all splits are the one that is given") {
  const TemporaryFolder folder;
  const auto given = model_of(folder, "zyx\nwv u\n", {});
  const PrepareSummary summary = prepare(measured(folder, given, "u v w\nx\n"));
  const DataSet data = DataSet::open(folder / "data");
  CHECK(data.vocabulary().hash() == given->vocabulary.hash());
  for (const char* split : {"train", "valid", "test"}) CHECK(decoded(data, split) == "u v w\nx\n");
  std::int32_t first = -1;
  data.split("test").copy(0, 1, &first);
  CHECK(first == 7);  // z y x \n w v " " u
  REQUIRE(summary.notes.size() == 1);
  CHECK_THAT(summary.notes[0], ContainsSubstring("train is the text of another split"));
  CHECK_THAT(get_file(folder / "data/data.json"), ContainsSubstring("\"vocabulary_of\""));
  // With --newlines drop nothing is there that the model lacks.
  PrepareOptions dropped = measured(folder, given, "u\nv\nw");
  dropped.drop_newlines = true;
  prepare(dropped);
  CHECK(decoded(DataSet::open(folder / "data"), "test") == "uvw");
}

TEST_CASE("given vocabulary: bytes that the model lacks are counted, each text once") {
  const TemporaryFolder folder;
  const auto given = model_of(folder, "ab\nba\n", {});
  CHECK_THAT(refusal(measured(folder, given, "a!b!\n?")),
             ContainsSubstring("got 3 that are not, 2 different: '!' (0x21) 2 times, '?' (0x3f) 1 times; the first is "
                               "byte 1 of"));
  PrepareOptions options;
  options.drop_newlines = true;
  const TemporaryFolder other;
  CHECK_THAT(refusal(measured(other, model_of(other, "ab\nba\n", options), "ab\nba\n")),
             ContainsSubstring("got 2 that are not, 1 different: 0x0a 2 times") &&
                 ContainsSubstring("--newlines drop leaves newlines out"));
}

TEST_CASE("given vocabulary: words that the model lacks become its unknown word, or are counted") {
  const TemporaryFolder folder;
  PrepareOptions words;
  words.kind = TokenKind::word;
  words.words.unseen = UnseenWords::unk;
  words.words.lower = true;
  const auto given = model_of(folder, "The cat sat\nthe <unk> sat\n", words);
  PrepareOptions options = measured(folder, given, "the dog sat\nA CAT\n");
  options.words.unseen = UnseenWords::unk;
  const PrepareSummary summary = prepare(options);
  const DataSet data = DataSet::open(folder / "data");
  CHECK(decoded(data, "test") == "the <unk> sat\n<unk> cat\n");
  CHECK(data.vocabulary().hash() == given->vocabulary.hash());
  CHECK(data.lower());
  CHECK(summary.splits[2].unknown == 2);
  CHECK(summary.splits[2].words == 5);
  CHECK_FALSE(data.text_amount("test")->bytes > 0);
  std::filesystem::remove_all(folder / "data");
  options.words.unseen = UnseenWords::error;
  CHECK_THAT(refusal(options), ContainsSubstring("got 2 that are not, 2 different: 'a', 'dog'; the first is in line 1 "
                                                 "of") &&
                                   ContainsSubstring("--oov unk puts <unk> in their place"));
}

TEST_CASE("given vocabulary: one text of words is cut, and a line end is a token where it is one of the model's") {
  const TemporaryFolder folder;
  PrepareOptions words;
  words.kind = TokenKind::word;
  words.words.end_of_line = false;
  const auto given = model_of(folder, "a b c d\n", words);
  PrepareOptions options;
  options.given = given;
  options.text = put_file(folder / "text.txt", "a b\nc d\na c\nb d\n");
  options.split = Percentages{50, 25, 25};
  options.out = folder / "data";
  const PrepareSummary summary = prepare(options);
  CHECK(summary.splits[0].tokens == 4);
  CHECK(summary.splits[1].tokens == 2);
  CHECK(summary.splits[2].first_byte == 12);
  CHECK(summary.notes.empty());
  CHECK(decoded(DataSet::open(folder / "data"), "test") == "b d");
  std::filesystem::remove_all(folder / "data");
  options.text = put_file(folder / "text.txt", "a b\nc d\na e\nb d\n");
  CHECK_THAT(refusal(options), ContainsSubstring("got 1 that is not, 1 different: 'e'; the first is in line 3 of") &&
                                   ContainsSubstring("it has no <unk>"));
}

TEST_CASE("given vocabulary: articles are read by the model's rules") {
  const TemporaryFolder folder;
  PrepareOptions articles;
  articles.kind = TokenKind::word;
  articles.articles.emplace();
  const auto given = model_of(folder, "Cats sit, 12 of them. Dogs lie.\n", articles);
  PrepareOptions options = measured(folder, given, "Dogs sit, 7 of us. Cats lie.\n");
  CHECK_THAT(refusal(options), ContainsSubstring("words in articles, got a text without --articles"));
  options.articles.emplace();
  prepare(options);
  const DataSet data = DataSet::open(folder / "data");
  CHECK(data.vocabulary().hash() == given->vocabulary.hash());
  const WordVocabulary& words = *data.vocabulary().words();
  std::string read;
  for (std::int64_t at = 0; at < data.split("test").size(); ++at) {
    std::int32_t id = -1;
    data.split("test").copy(at, 1, &id);
    read += std::string(words.word(id)) + " ";
  }
  CHECK(read == "Dogs sit , N of UNK . </s> Cats lie . </s> ");
}

TEST_CASE("given vocabulary: options that would make another one are refused, and so are placeholders") {
  const TemporaryFolder folder;
  const auto given = model_of(folder, "ab\nba\n", {});
  PrepareOptions options = measured(folder, given, "ab\n");
  options.byte_order = ByteOrder::count;
  CHECK_THAT(refusal(options), ContainsSubstring("got options that make another one"));
  const auto nameless =
      std::make_shared<const GivenVocabulary>(GivenVocabulary{.vocabulary = placeholder_words(3), .of = "m"});
  CHECK(are_placeholders(nameless->vocabulary));
  CHECK_FALSE(are_placeholders(given->vocabulary));
  CHECK_THAT(refusal(measured(folder, nameless, "ab\n")),
             ContainsSubstring("got 'm'\n  the model's symbols are placeholders, <0> to <2>"));
}

}  // namespace engram::harness::given_vocabulary_test
