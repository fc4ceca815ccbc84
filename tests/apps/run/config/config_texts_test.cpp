/// Values that are texts: what is written, in files and on the command line, is what is read.

#include <string>

#include "apps/run/config/config_review.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "tests/apps/run/config/smallest_config.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::config_texts_test {

TEST_CASE("texts: quotes, line ends and control characters read back, and only strings are texts") {
  const std::string prompt = "\"It\\\ncame\tto" + std::string(1, '\0') + "\xc2\x9b pass\"\x7f é \b\f\r # x = 1 '";
  RunConfig config = parse("");
  config.training.sample_prompt = prompt;
  config.training.sample_every = 3;
  const std::string toml = to_toml(config);
  // One line, which can be shown anywhere.
  CHECK_THAT(toml,
             ContainsSubstring(R"(sample_prompt = "\"It\\\ncame\tto\u0000\u009B pass\"\u007F é \b\f\r # x = 1 '")"));
  CHECK(parse_run_config(toml, "again").training.sample_prompt == prompt);

  const auto given = [](const std::string& written) {
    return parse("", {"training.sample_prompt=" + written}).training.sample_prompt;
  };
  CHECK(given("Once upon a time, ") == "Once upon a time,");
  CHECK(given("\"Once \"") == "Once ");
  CHECK(given("'a\\n'") == "a\\n");
  CHECK(given(R"("a\nb \"c\"")") == "a\nb \"c\"");
  CHECK(given("\"no\" and \"yes\"") == "\"no\" and \"yes\"");
  CHECK(given("5") == "5");
  CHECK(given("[1, 2]") == "[1, 2]");
  CHECK(given("") == "");
  CHECK(given("\"\"\"\na\nb\"\"\"") == "a\nb");

  for (const char* other : {"5", "true", "[\"a\"]", "1979-05-27"})
    CHECK_THAT(refusal(text("[training]\nsample_prompt = ", other, "\n")),
               ContainsSubstring("training.sample_prompt must be text in quotes (UTF-8), got '"));
  CHECK_THAT(refusal("", {"training.sample_prompt=a\xff"}), ContainsSubstring("got 'a\\xff'"));
  CHECK_THAT(refusal("", {"training.sample_prompt=" + std::string(4097, 'a')}),
             ContainsSubstring("must be at most 4096 bytes, got 4097 bytes"));
  CHECK_THAT(refusal("", {"training.sample_every=-1"}), ContainsSubstring("sample_every must be from 0"));
  CHECK(config_warnings(parse("", {"training.sample_prompt=a"})).size() ==
        config_warnings(parse("", {"training.sample_prompt=a", "training.sample_every=1"})).size() + 1);
}

}  // namespace engram::harness::config_texts_test
