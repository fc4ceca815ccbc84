/// Questions of the Children's Book Test: blocks as they should be, and every way in which they should not.

#include <map>

#include "apps/data/text/cbt.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::cbt_reader_test {

using namespace engram::data;

namespace {

const std::string kCandidates = "cat|cow|dog|egg|fox|hat|hen|owl|pig|rat";

std::string sentences(int from, int to) {
  std::string lines;
  for (int i = from; i <= to; ++i) lines += std::to_string(i) + " Sentence number " + std::to_string(i) + " .\n";
  return lines;
}

/// A block with the given line 21, without its number.
std::string block_with(const std::string& last) { return sentences(1, 20) + "21 " + last + "\n\n"; }
std::string good_block(const std::string& answer = "hat") {
  return block_with("The XXXXX ate the mouse .\t" + answer + "\t\t" + kCandidates);
}

struct Questions {
  std::vector<CbtQuestion> all;
  std::string skipped;
  std::int64_t blocks = 0;
};
Questions read(const std::filesystem::path& path, bool lenient = false) {
  CbtReader reader(path, lenient);
  Questions questions;
  for (CbtQuestion question; reader.next(question);) questions.all.push_back(question);
  questions.skipped = reader.skipped_text();
  questions.blocks = reader.blocks();
  return questions;
}

}  // namespace

TEST_CASE("cbt: two blocks are two questions", "[data][cbt]") {
  TemporaryFolder folder;
  const auto path =
      put_file(folder / "q.txt", good_block() + block_with("Give XXXXX back\tRat\t\tRat|b|c|d|e|f|g|h|i|j"));
  const Questions questions = read(path);
  REQUIRE(questions.all.size() == 2);
  const CbtQuestion& first = questions.all[0];
  for (std::size_t i = 0; i < 20; ++i)
    CHECK(first.sentences[i] == std::vector<std::string>{"Sentence", "number", std::to_string(i + 1), "."});
  CHECK(first.query == std::vector<std::string>{"The", "XXXXX", "ate", "the", "mouse", "."});
  CHECK(first.blank == 1);
  CHECK(first.answer == "hat");
  CHECK(first.candidates ==
        std::array<std::string, 10>{"cat", "cow", "dog", "egg", "fox", "hat", "hen", "owl", "pig", "rat"});
  CHECK(first.answer_index == 5);
  CHECK(first.block == 1);
  CHECK(first.line == 1);
  const CbtQuestion& second = questions.all[1];
  CHECK(second.query == std::vector<std::string>{"Give", "XXXXX", "back"});
  CHECK(second.answer == "Rat");
  CHECK(second.answer_index == 0);
  CHECK(second.block == 2);
  CHECK(second.line == 23);
  CHECK(questions.blocks == 2);
  CHECK(questions.skipped.empty());
}

TEST_CASE("cbt: what is allowed beside the exact form", "[data][cbt]") {
  TemporaryFolder folder;
  const std::string no_separator = good_block().substr(0, good_block().size() - 1);
  const std::string no_end = no_separator.substr(0, no_separator.size() - 1);
  CHECK(read(put_file(folder / "a", no_separator + no_separator + no_end)).all.size() == 3);
  CHECK(read(put_file(folder / "b", "\n \n" + good_block() + "\n\n" + good_block() + "\n")).all.size() == 2);
  CHECK(read(put_file(folder / "empty", "")).all.empty());

  std::string with_returns;
  for (const char letter : good_block()) with_returns += letter == '\n' ? "\r\n" : std::string(1, letter);
  const Questions returns = read(put_file(folder / "c", with_returns + with_returns));
  REQUIRE(returns.all.size() == 2);
  CHECK(returns.all[1].candidates[9] == "rat");
  CHECK(returns.all[1].sentences[19].back() == ".");

  const std::string spaced = "  1   A   big  cat  \n" + sentences(2, 20) +
                             "21  The   XXXXX  .  \t hat \t \t cat | cow|dog|egg|fox| hat |hen|owl|pig|rat \n";
  const Questions spaces = read(put_file(folder / "d", spaced));
  REQUIRE(spaces.all.size() == 1);
  CHECK(spaces.all[0].sentences[0] == std::vector<std::string>{"A", "big", "cat"});
  CHECK(spaces.all[0].query == std::vector<std::string>{"The", "XXXXX", "."});
  CHECK(spaces.all[0].answer == "hat");
  CHECK(spaces.all[0].candidates[0] == "cat");
  CHECK(spaces.all[0].candidates[9] == "rat");
}

TEST_CASE("cbt: every malformation is an error of its own with file, line and block", "[data][cbt]") {
  TemporaryFolder folder;
  const auto query = [](const std::string& last) { return block_with(last); };
  const std::string tail = "\that\t\t" + kCandidates;
  struct Wrong {
    std::string block;
    CbtProblem problem;
    std::string fact;
    int line;  // in the block
  };
  const std::vector<Wrong> wrongs{
      {sentences(1, 4) + sentences(6, 20) + "21 The XXXXX ." + tail + "\n\n", CbtProblem::numbers,
       "'6 Sentence number 6 .' where 5 should be", 5},
      {sentences(2, 20) + "21 The XXXXX ." + tail + "\n\n", CbtProblem::numbers, "where 1 should be", 1},
      {sentences(1, 20) + "22 The XXXXX ." + tail + "\n\n", CbtProblem::numbers, "where 21 should be", 21},
      {sentences(1, 9) + "ten\n" + sentences(11, 20) + "\n", CbtProblem::numbers, "'ten' where 10 should be", 10},
      {sentences(1, 9) + "10th\n" + sentences(11, 20) + "\n", CbtProblem::numbers, "'10th' where 10 should be", 10},
      {sentences(1, 9) + "\n", CbtProblem::numbers, "an empty line where 10 should be", 10},
      {query("The cat ." + tail), CbtProblem::blank_missing, "none", 21},
      {query("XXXXX and XXXXX ." + tail), CbtProblem::blank_repeated, "2 times", 21},
      {query("The XXXXX." + tail), CbtProblem::blank_glued, "'XXXXX.'", 21},
      {query("XXXXX saw XXXXX's hat" + tail), CbtProblem::blank_glued, "'XXXXX's'", 21},
      {query("The XXXXX . hat " + kCandidates), CbtProblem::tabs, "0 tabs", 21},
      {query("The XXXXX .\that\t" + kCandidates), CbtProblem::tabs, "2 tabs", 21},
      {query("The XXXXX .\that\tx\t" + kCandidates), CbtProblem::tabs, "'x' between the two tabs", 21},
      {query("The XXXXX .\that\t\t" + kCandidates + "|yak"), CbtProblem::candidate_count, "got 11", 21},
      {query("The XXXXX .\that\t\that"), CbtProblem::candidate_count, "got 1 ", 21},
      {query("The XXXXX .\that\t\tcat||dog|egg|fox|hat|hen|owl|pig|rat"), CbtProblem::candidate_empty,
       "candidate 2 empty", 21},
      {query("The XXXXX .\that\t\tcat|c ow|dog|egg|fox|hat|hen|owl|pig|rat"), CbtProblem::candidate_not_a_word,
       "'c ow'", 21},
      {query("The XXXXX .\that\t\tcat|cow|dog|egg|fox|hat|hen|owl|pig|cow"), CbtProblem::candidate_repeated,
       "'cow' twice", 21},
      {query("The XXXXX .\tHat\t\t" + kCandidates), CbtProblem::answer_missing, "'Hat'", 21},
      {query("The XXXXX .\t\t\t" + kCandidates), CbtProblem::answer_missing, "''", 21},
      {sentences(1, 7), CbtProblem::ends_early, "its end after line 7 of 21", 7},
      {sentences(1, 20), CbtProblem::ends_early, "its end after line 20 of 21", 20},
  };
  std::map<CbtProblem, int> seen;
  for (const Wrong& wrong : wrongs) {
    CAPTURE(wrong.block);
    const auto path = put_file(folder / "wrong.txt", good_block() + wrong.block);
    const std::string message = message_of<FileError>([&] { read(path); });
    CHECK_THAT(message, ContainsSubstring(std::string(rule_of(wrong.problem))) && ContainsSubstring(wrong.fact) &&
                            ContainsSubstring("in block 2, line " + std::to_string(22 + wrong.line) + " of '" +
                                              path.string() + "'"));
    ++seen[wrong.problem];

    // The same is one block less to a lenient reader, which says why.
    const auto longer = put_file(folder / "longer.txt", good_block() + wrong.block + "\n" + good_block("owl"));
    if (wrong.problem == CbtProblem::ends_early) continue;
    const Questions lenient = read(longer, true);
    REQUIRE(lenient.all.size() == 2);
    CHECK(lenient.all[1].answer == "owl");
    CHECK(lenient.all[1].block == 3);
    CHECK(lenient.skipped == "1 block left out: " + std::string(rule_of(wrong.problem)) + "\n");
  }
  CHECK(seen.size() == kCbtProblems);
}

TEST_CASE("cbt: a lenient reader counts blocks by reason", "[data][cbt]") {
  TemporaryFolder folder;
  const std::string none = block_with("The cat .\that\t\t" + kCandidates), few = block_with("XXXXX\ta\t\ta|b");
  const auto path = put_file(folder / "q", none + few + good_block() + few + sentences(1, 3));
  CbtReader reader(path, true);
  CbtQuestion question;
  REQUIRE(reader.next(question));
  CHECK(question.block == 3);
  CHECK_FALSE(reader.next(question));
  CHECK(reader.blocks() == 5);
  CHECK(reader.skipped() == 4);
  CHECK(reader.skipped(CbtProblem::blank_missing) == 1);
  CHECK(reader.skipped(CbtProblem::candidate_count) == 2);
  CHECK(reader.skipped(CbtProblem::ends_early) == 1);
  CHECK(reader.skipped(CbtProblem::tabs) == 0);
  CHECK_THAT(reader.skipped_text(), ContainsSubstring("2 blocks left out: there must be 10 candidates"));
}

TEST_CASE("cbt: bytes that are no UTF-8 are replaced and counted", "[data][cbt]") {
  TemporaryFolder folder;
  std::string block = good_block();
  block.replace(block.find("Sentence"), 8, "Sent\xffnce");
  CbtReader reader(put_file(folder / "q", block));
  CbtQuestion question;
  REQUIRE(reader.next(question));
  CHECK(question.sentences[0][0] == "Sent\ufffdnce");
  CHECK(reader.replaced() == 1);
  CHECK_THAT(message_of<FileError>([&] { CbtReader(folder / "missing"); }), ContainsSubstring("missing"));
}

}  // namespace engram::harness::cbt_reader_test
