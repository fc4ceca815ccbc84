/// Texts of the command line against the tokens that `engram prepare` makes of the same texts, and what checkpoints say
/// about how a text is read.

#include "apps/data/vocabulary/text_tokens.hpp"
#include "apps/run/config/run_config_file.hpp"

#include <algorithm>

#include "apps/data/text/sentences.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::text_tokens_test {

using namespace engram::data;

namespace {

using Ids = std::vector<std::int32_t>;

constexpr std::string_view kParagraphs =
    "Mr. Smith paid $5.50 in 1999. He left for the U.S. Army and didn't\ncome back! \"Why?\" She asked, \"why...\" "
    "Nobody knew (it).\n\nUNK was\n\n  the <unk> ANSWER. It cost 1 @,@ 000 N\n\n";
constexpr std::string_view kBooks =
    "_BOOK_TITLE_ : A_Book.txt.out\nCHAPTER 1 The End\n`` Mr. Smith , '' he said . `` It 's 5 . ''\nHe left\n";

/// Data whose splits are all this text.
DataSet data_of(const TemporaryFolder& folder, std::string_view text, const std::optional<ArticleRules>& articles,
                const WordRules& words = {}) {
  PrepareOptions options;
  options.kind = TokenKind::word;
  options.articles = articles;
  options.words = words;
  options.train = options.valid = options.test = put_file(folder / "text", text);
  options.out = folder / "data";
  prepare(options);
  return DataSet::open(options.out);
}

Ids prepared(const DataSet& data) {
  const TokenView tokens = data.split("valid");
  Ids ids(static_cast<std::size_t>(tokens.size()));
  tokens.copy(0, tokens.size(), ids.data());
  return ids;
}

Ids read(const DataSet& data, std::string_view text, UnseenWords unseen = UnseenWords::error) {
  // As a checkpoint hands them over.
  const TextReading reading{data.vocabulary(), TextRules::parse(data.text_rules().json_text()), unseen};
  return text_tokens(std::string(text), reading, "generate", "the prompt");
}

std::string shown(const DataSet& data, std::string_view text, UnseenWords unseen = UnseenWords::error) {
  return shown_text(read(data, text, unseen), {data.vocabulary(), data.text_rules(), unseen});
}

std::string refused(const DataSet& data, std::string_view text) {
  return message_of<UsageError>([&] { read(data, text); });
}

/// The whole text gives the tokens of the data, and what is before one of the bytes `cuts` in it, their beginning.
void check_all_beginnings(const DataSet& data, std::string_view text, std::string_view cuts) {
  const Ids all = prepared(data);
  CHECK(read(data, text) == all);
  const bool sentence_lines = data.text_rules().articles->sentence_lines;
  for (std::size_t end = text.find_first_of(cuts); end != std::string_view::npos;
       end = text.find_first_of(cuts, end + 1)) {
    // What follows is not seen: that 1 @,@ goes on, or a line, which may end here as well.
    if (text.substr(0, end).ends_with("@,@") || (sentence_lines && ends_sentence(text.substr(0, end)))) continue;
    const Ids some = read(data, text.substr(0, end));
    INFO(text.substr(0, end));
    CHECK(std::equal(some.begin(), some.end(), all.begin(), all.begin() + std::ssize(some)));
  }
}

}  // namespace

TEST_CASE("prompts: articles are read as they were prepared, whole and from the beginning", "[data][articles]") {
  const TemporaryFolder folder;
  const std::vector<ArticleRules> all{{},
                                      {.format = ArticleFormat::file, .keep_numbers = true},
                                      {.pretokenized = true},
                                      {.sentence_lines = true},
                                      {.pretokenized = true, .sentence_lines = true, .sentence_end = false},
                                      {.sentence_end = false}};
  for (bool lower = false; const ArticleRules& rules : all) {
    CAPTURE(rules.pretokenized, rules.sentence_lines, rules.sentence_end, rules.keep_numbers, lower);
    check_all_beginnings(data_of(folder, kParagraphs, rules, {.lower = lower}), kParagraphs, " \n");
    lower = !lower;
  }
}

TEST_CASE("prompts: the formats of articles", "[data][articles]") {
  const TemporaryFolder folder;
  for (const std::string_view text :
       {std::string_view("<doc id=\"1\" title=\"A\">\nHe left\nthe house.\n</doc>\n<doc id=\"2\">\nOne. Two\n</doc>\n"),
        std::string_view(" = Title = \n\nHe left\n\n = Another = \nthe house.\n"), kBooks}) {
    INFO(text);
    check_all_beginnings(data_of(folder, text, ArticleRules{}), text, "\n");
  }
  // Lines of a document are paragraphs; those of a file may be broken anywhere.
  const auto of_lines = [&](std::string_view text) {
    return shown(data_of(folder, text, ArticleRules{}), "He left\nthe house\n");
  };
  CHECK(of_lines("<doc>\nHe left the house\n</doc>\n") == "He left\nthe house\n");
  CHECK(of_lines("He left the house\n") == "He left the house");
  // All data were books: a text without a title is one too. The marks of words are those of the books.
  const DataSet books = data_of(folder, kBooks, ArticleRules{});
  CHECK(books.text_rules().articles->format == ArticleFormat::cbt);
  CHECK(books.article_rules()->format == ArticleFormat::automatic);
  CHECK(shown(books, "`` It 's 5 . ''\nHe") == "`` It 's N . ''\nHe");
  CHECK_THAT(refused(books, "It's"), ContainsSubstring("got 'It's'"));
  // Of several formats each text has its own.
  PrepareOptions mixed;
  mixed.kind = TokenKind::word;
  mixed.articles.emplace();
  mixed.train = put_file(folder / "books", kBooks);
  mixed.valid = mixed.test = put_file(folder / "file", "It's here");
  mixed.out = folder / "mixed";
  prepare(mixed);
  CHECK(DataSet::open(mixed.out).text_rules().articles->format == ArticleFormat::automatic);
}

TEST_CASE("prompts: a last sentence of articles has ended if it looks so", "[data][articles]") {
  for (const std::string_view ended : {"He left.", "Why?", "No!\"", "Well...", "so (he left.)", "by J. Smith.",
                                       "He said 'go.'", "at 5.", "he .", "Say No.", "the \u201cend.\u201d", "."})
    CHECK(ends_sentence(ended));
  for (const std::string_view open :
       {"He left", "Mr.", "in the U.S.", "by J.", "e.g.", "(He left)", "''", "", "a.b", "said the boys'"})
    CHECK_FALSE(ends_sentence(open));
  const TemporaryFolder folder;
  const DataSet data = data_of(folder, "Mr. Smith left . He\nmet Dr. Who.\n", ArticleRules{});
  CHECK(shown(data, "Mr. Smith left.") == "Mr. Smith left .\n");
  CHECK(shown(data, "Mr. Smith left. He met Dr.") == "Mr. Smith left .\nHe met Dr.");
  CHECK(shown(data, "Mr. Smith left. He met") == "Mr. Smith left .\nHe met");
  CHECK(shown(data, "He met\n\n") == "He met\n");  // a paragraph has ended
  CHECK(shown(data, " \n ").empty());
}

TEST_CASE("prompts: words that articles do not have", "[data][articles]") {
  const TemporaryFolder folder;
  const DataSet data = data_of(folder, "The cat left in 1999.", ArticleRules{}, {.lower = true});
  CHECK_THAT(refused(data, "The DOG left."), ContainsSubstring("got 'dog'") &&
                                                 ContainsSubstring("--oov unk puts UNK in its place") &&
                                                 ContainsSubstring("generate: the prompt"));
  CHECK(shown(data, "The DOG left.", UnseenWords::unk) == "the UNK left .\n");
  CHECK(shown(data, "The <unk> UNK left") == "the UNK UNK left");
  CHECK(shown(data, "THE CAT LEFT IN 5-6") == "the cat left in N");
  CHECK_THAT(refused(data, "the cat \xff"), ContainsSubstring("0xff at position 8"));
  const DataSet words = data_of(folder, "the cat left .", ArticleRules{.pretokenized = true});
  CHECK_THAT(refused(words, "the cat\n</s> left"), ContainsSubstring("</s>") && ContainsSubstring("line 1"));
  // Without ends of sentences a text still begins after what was before every article.
  const DataSet open = data_of(folder, "The cat left.", ArticleRules{.sentence_end = false});
  CHECK(text_start_token({open.vocabulary(), open.text_rules()}) == open.article_start_token());
  CHECK(shown(open, "The cat left. The") == "The cat left . The");
}

TEST_CASE("prompts: lower-cased words, and marks of sentences", "[data]") {
  const TemporaryFolder folder;
  constexpr std::string_view kText = "An AGE ago\n\na <unk> \u00c9\n";
  {
    const DataSet data = data_of(folder, kText, {}, {.lower = true});
    CHECK(read(data, kText) == prepared(data));
    CHECK(read(data, "an age ago\n\nA <UNK> \u00c9\n") == prepared(data));
    CHECK(shown(data, "AN Ago") == "an ago");
    CHECK_THAT(refused(data, "AGE Old"), ContainsSubstring("'old' at position 4"));
  }
  CHECK_THAT(refused(data_of(folder, kText, {}), "an AGE"), ContainsSubstring("'an' at position 0"));
  for (const SentenceMarks marks : {SentenceMarks::around, SentenceMarks::between}) {
    PrepareOptions options;
    options.kind = TokenKind::word;
    options.word_list = put_file(folder / "list", "<S>\n<UNK>\nan\nage\nago\n");
    options.words.sentences = marks;
    options.words.lower = true;
    options.train = options.valid = put_file(folder / "lines", "An age\n\nago an\n");
    options.out = folder / "listed";
    prepare(options);
    const DataSet data = DataSet::open(options.out);
    CHECK(read(data, "An age\n\nago an\n") == prepared(data));
    CHECK(shown(data, "An age") == "an age");
    CHECK(read(data, "an").size() == 2);
    CHECK(read(data, "").empty());
    CHECK(shown(data, "an old age", UnseenWords::unk) == "an <UNK> age");
  }
}

namespace {

/// A model of words or articles as training saves it, without having trained.
struct SavedModel : TemporaryFolder {
  explicit SavedModel(const std::optional<ArticleRules>& articles)
      : data(data_of(*this, "The cat left in 1999. It ran.", articles, {.lower = true})) {
    const RunConfig config =
        load_run_config(put_file(*this / "config.toml", recurrent_config()),
                        {"model.width=6", "model.embedding_width=2", "training.batch=1", "training.block=2"});
    TrainingSession session(resolved_config(config, data), data, runtime, DType::f32);
    save_model(run / "model.safetensors", session);
  }
  void rewrite(const std::function<void(Metadata&)>& change) const {
    const SafetensorsFile file(run / "model.safetensors");
    std::vector<TensorSource> tensors;
    for (const auto& [name, tensor] : file.tensors())
      tensors.push_back(host_tensor(name, tensor.dtype, tensor.shape, file.bytes(tensor).data()));
    Metadata metadata = file.metadata();
    change(metadata);
    write_safetensors(run / "model.safetensors", tensors, metadata);
  }
  std::string generated(const std::string& prompt) const {
    const ProcessResult result = run_engram(
        {"generate", (run / "model.safetensors").string(), "--prompt", prompt, "--length", "0", "--threads", "1"});
    return result.exit_code == 0 ? result.out : result.err;
  }

  Runtime runtime{{}, 1, 1};
  DataSet data;
  std::filesystem::path run = *this / "run";
};

}  // namespace

TEST_CASE("checkpoints say how text became words, and old ones do not", "[data][articles]") {
  {
    const SavedModel saved{ArticleRules{}};
    CHECK(saved.generated("The Cat left in 7. It") == "the cat left in N.\nit");
    saved.rewrite([](Metadata& metadata) { metadata.erase(std::string(metadata_keys::kText)); });
    CHECK_THAT(saved.generated("The cat"), ContainsSubstring("'The' at position 0"));
    CHECK(saved.generated("the cat left in N . </s> it") == "the cat left in N .\nit");
  }
  const SavedModel saved{std::nullopt};
  CHECK(saved.generated("The CAT") == "the cat");
  saved.rewrite(
      [](Metadata& metadata) { metadata.insert_or_assign(std::string(metadata_keys::kText), "{\"lower\": 1"); });
  CHECK_THAT(saved.generated("the cat"), ContainsSubstring("engram.text"));
}

TEST_CASE("a run of articles that an earlier version saved goes on bit for bit", "[articles][recurrent]") {
  const ArticleFolder folder(6);
  const auto run = [&](const std::string& out) { return recurrent_run(folder, out, {"schedule.steps=6"}); };
  const auto text_of = [](const TrainingRunOptions& options, CheckpointKind kind) {
    const CheckpointFile file(checkpoint_path(options.out, kind));
    return file.metadata().contains(metadata_keys::kText) ? file.metadata().find(metadata_keys::kText)->second
                                                          : std::string();
  };
  const TrainingRunOptions whole = run("whole");
  run_training(whole, never());
  CHECK_THAT(text_of(whole, CheckpointKind::newest), ContainsSubstring("\"format\":\"doc\""));
  CHECK(text_of(whole, CheckpointKind::best) == text_of(whole, CheckpointKind::newest));
  TrainingRunOptions parts = run("parts");
  CHECK_THROWS_AS(run_training(parts, after_steps(3)), Interrupted);
  const std::filesystem::path path = checkpoint_path(parts.out, CheckpointKind::newest);
  {
    const SafetensorsFile file(path);
    std::vector<TensorSource> tensors;
    for (const auto& [name, tensor] : file.tensors())
      tensors.push_back(host_tensor(name, tensor.dtype, tensor.shape, file.bytes(tensor).data()));
    Metadata metadata = file.metadata();
    metadata.erase(std::string(metadata_keys::kText));
    write_safetensors(path, tensors, metadata);
  }
  REQUIRE(text_of(parts, CheckpointKind::newest).empty());
  parts.resume = true;
  run_training(parts, never());
  CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
}

}  // namespace engram::harness::text_tokens_test
