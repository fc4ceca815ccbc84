/// Contexts that a model writes on from: which tokens they are, and what the program shows of them.

#include "apps/run/generation/text_context.hpp"

#include <sstream>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/generation/text_writer.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/apps/run/transfer/transfer_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::text_context_test {
namespace {

using Ids = std::vector<std::int32_t>;

Ids part(const data::DataSet& data, const std::string& split, std::int64_t begin, std::int64_t end) {
  Ids ids(static_cast<std::size_t>(end - begin));
  data.split(split).copy(begin, end - begin, ids.data());
  return ids;
}

}  // namespace

TEST_CASE("context: a part of a split, and what follows", "[generation]") {
  const ArticleFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  const RunConfig reads_articles = parse_run_config(recurrent_config(), "test", {});
  const RunConfig reads_all = parse_run_config(small_config(), "test", {});
  const auto starts = data.articles("test");
  const std::int64_t size = data.split("test").size();
  REQUIRE(starts.size() == 6);

  const TextContext first = context_of(data, {.split = "test", .length = 10, .reference = 7}, reads_all);
  CHECK(first.tokens == part(data, "test", 0, 10));
  CHECK(first.reference == part(data, "test", 10, 17));
  CHECK(first.start == data.article_start_token());
  CHECK(first.place == "10 tokens of test, from 0 on");
  // An article is read from its beginning, at most to its end.
  const std::int64_t begin = starts[2], end = starts[3];
  const TextContext article = context_of(data, {.split = "test", .article = 2, .length = 5, .reference = 3}, reads_all);
  CHECK(article.tokens == part(data, "test", begin, begin + 5));
  CHECK(article.reference == part(data, "test", begin + 5, begin + 8));
  CHECK(article.start == data.article_start_token());
  const TextContext whole =
      context_of(data, {.split = "test", .article = 2, .length = 9999, .reference = 3}, reads_articles);
  CHECK(whole.tokens == part(data, "test", begin, end));
  CHECK(whole.reference.empty());
  CHECK(whole.place == text(end - begin, " tokens of article 2 of test"));
  // Over the border of two: a model of articles has forgotten the first, others have not.
  const ContextPlace border{.split = "test", .at = begin - 4, .article = {}, .length = 9, .reference = 1};
  const TextContext over = context_of(data, border, reads_articles);
  CHECK(over.tokens == part(data, "test", begin - 4, begin + 5));
  CHECK(over.forgotten == 4);
  CHECK(over.start == data.article_start_token());
  const TextContext stream = context_of(data, border, reads_all);
  CHECK(stream.forgotten == 0);
  CHECK(stream.start == -1);
  // At the end of the split there may be less than was asked for.
  const TextContext last = context_of(data, {.split = "test", .at = size - 3, .reference = 5}, reads_all);
  CHECK(last.tokens == part(data, "test", size - 3, size));
  CHECK(last.reference.empty());

  const auto refused = [&](const ContextPlace& place) {
    return message_of<UsageError>([&] { context_of(data, place, reads_all); });
  };
  CHECK(refused({.split = "test", .at = size}) ==
        text("generate: --at must be a position from 0 to ", size - 1, " in test, got ", size));
  CHECK(refused({.split = "test", .article = 6}) == "generate: --article must be from 0 to 5 in test, got 6");
  CHECK_THAT(message_of<UsageError>([&] { context_of(data::DataSet::open(folder.flat()), {.article = 0}, reads_all); }),
             StartsWith("generate: --article needs data that know their articles"));
  const TextContext typed = context_of(Ids{4, 5, 6, 7}, "'f'", {.at = 1, .length = 2, .reference = 9});
  CHECK(typed.tokens == Ids{5, 6});
  CHECK(typed.reference == Ids{7});
  CHECK_THROWS_AS(context_of(Ids{}, "'f'", {}), UsageError);
}

TEST_CASE("context: models of every family go on from it as evaluation reads it", "[generation]") {
  for (const std::string& toml : small_configs_of_families()) {
    CAPTURE(toml);
    const RunFolder folder;
    SmallModel model(toml, folder.data());
    model.train(2);
    Runtime runtime{{}, 1};
    TrainedModel trained(model.save(folder / "model/model.safetensors"), CheckpointKind::newest, runtime);
    const TextContext context = context_of(model.data, {.split = "test", .at = 3, .length = 90}, trained.config());
    // A prompt of the same text is the same to the model.
    const std::string text = model.data.vocabulary().decode(context.tokens);
    const auto written = [&](bool as_prompt) {
      TextWriter writer(trained, data::UnseenWords::error);
      const std::string shown = as_prompt ? writer.read(text, "the test") : writer.begin(context.tokens);
      CHECK(shown == text);
      std::string all;
      writer.write(40, {.seed = 5}, [&all](std::string_view piece) { all += piece; });
      return all;
    };
    CHECK(written(false) == written(true));
  }
}

TEST_CASE("context: what generate prints", "[generation]") {
  const ArticleFolder folder;
  put_file(folder / "config.toml", recurrent_config());
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const ProcessResult trained = run_engram({"train", "--config", path("config.toml"), "--data", path("data"), "--out",
                                            path("run"), "--set", "schedule.steps=2", "training.checkpoint_every=2"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const auto run = [&](Arguments more) {
    more.insert(more.begin(), {"generate", path("run")});
    return more;
  };
  const auto printed = [&](const Arguments& more) {
    const ProcessResult result = run_engram(run(more));
    CHECK(result.exit_code == 0);
    CHECK(result.err.empty());
    return result.out;
  };
  const data::DataSet data = data::DataSet::open(folder.data());
  const auto begin = data.articles("test")[1];
  const auto text_of = [&](std::int64_t from, std::int64_t to, std::int64_t before) {
    const std::string whole = data.vocabulary().decode(part(data, "test", before, to));
    return whole.substr(data.vocabulary().decode(part(data, "test", before, from)).size());
  };
  // A part below its heading.
  const auto line = [](std::string piece) {
    if (piece.starts_with(' ')) piece.erase(0, 1);
    return piece.ends_with('\n') ? piece : piece + "\n";
  };
  const Arguments place{"--data", path("data"), "--split", "test",     "--article",
                        "1",      "--context",  "12",      "--length", "6"};
  const std::string plain = printed(place);
  Arguments all = place;
  all.insert(all.end(), {"--show-context", "--reference"});
  CHECK(printed(all) == "--- 12 tokens of article 1 of test ---\n" + line(text_of(begin, begin + 12, begin)) +
                            "--- the model writes ---\n" + line(plain) + "--- the text goes on ---\n" +
                            line(text_of(begin + 12, begin + 18, begin)));
  // A file with the same words.
  put_file(folder / "prompt", text_of(begin, begin + 12, begin));
  CHECK(printed({"--prompt-file", path("prompt"), "--length", "6", "--context", "3", "--reference"})
            .ends_with("--- the text goes on ---\n" + line(text_of(begin + 3, begin + 9, begin))));
  CHECK_THAT(printed({"--prompt-file", path("prompt"), "--length", "6", "--reference"}),
             EndsWith("--- the text goes no further ---\n"));

  const auto refused = [&](const Arguments& more) { return error_of(run(more), 2); };
  CHECK_THAT(refused({"--prompt", "a", "--data", path("data")}), ContainsSubstring("got --prompt and --data"));
  CHECK_THAT(refused({"--prompt-file", path("prompt"), "--data", path("data")}),
             ContainsSubstring("got --prompt-file and --data"));
  CHECK_THAT(refused({"--data", path("data"), "--oov", "unk"}), ContainsSubstring("--oov is for"));
  for (const Arguments& lonely : {Arguments{"--at", "1"}, {"--context", "1"}, {"--show-context"}, {"--reference"}}) {
    Arguments more{"--prompt", "a"};
    more.insert(more.end(), lonely.begin(), lonely.end());
    CHECK_THAT(refused(more), ContainsSubstring(lonely[0] + " needs a context"));
  }
  CHECK_THAT(refused({"--data", path("data"), "--at", "999999"}), ContainsSubstring("--at must be a position from 0"));
  CHECK_THAT(refused({"--join", "glue"}), ContainsSubstring("--join"));
}

TEST_CASE("context: words are shown joined, and as they are read when asked", "[generation]") {
  TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 60; ++i) lines += "the man 's dog ( the well @-@ known one ) did n't go , \" no \" .\n";
  data::PrepareOptions options;
  options.kind = data::TokenKind::word;
  options.text = put_file(folder / "text", lines);
  options.out = folder / "data";
  options.join = data::WordJoin::penn;
  data::prepare(options);
  SmallModel model(small_config(), folder / "data");
  Runtime runtime{{}, 1};
  TrainedModel trained(model.save(folder / "model/model.safetensors"), CheckpointKind::newest, runtime);
  const auto shown = [&](std::optional<data::WordJoin> join, const std::string& prompt) {
    return TextWriter(trained, data::UnseenWords::error, join).read(prompt, "the test");
  };
  const std::string prompt = "the  man 's dog ( the well @-@ known one ) did n't go";
  CHECK(shown(std::nullopt, prompt) == "the man's dog (the well-known one) didn't go");
  CHECK(shown(data::WordJoin::spaces, prompt) == "the man 's dog ( the well @-@ known one ) did n't go");
  // What the model writes joins what it has read.
  TextWriter writer(trained, data::UnseenWords::error);
  const std::string read = writer.read("the man", "the test");
  std::string written;
  writer.write(30, {.seed = 3}, [&written](std::string_view piece) { written += piece; });
  TextWriter plain(trained, data::UnseenWords::error, data::WordJoin::spaces);
  std::string words = plain.read("the man", "the test");
  plain.write(30, {.seed = 3}, [&words](std::string_view piece) { words += piece; });
  data::WordJoiner joiner(data::WordJoin::penn);
  const std::string known = joiner.add(words);
  CHECK(read + written == known + joiner.finish());
  CHECK(read + written != words);
}

}  // namespace engram::harness::text_context_test
