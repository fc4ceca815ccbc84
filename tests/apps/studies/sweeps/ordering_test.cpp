/// Claims about the order of a sweep's variants: what is read of them, and both verdicts on made-up tables.

#include "apps/studies/sweeps/ordering.hpp"
#include "core/files/json.hpp"

#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::ordering_test {
namespace {

/// One seed.
constexpr const char* kTable =
    "variant,overrides,test_ppl,memory_usage,state,best\n"
    "small,product_key.subkeys=8,23.5,1.0,done,0\n"
    "middle,\"product_key.subkeys=16,product_key.heads=2\",21.25,0.98,done,0\n"
    "large,product_key.subkeys=32,20,0.7,done,1\n"
    "broken,schedule.rate=9,,,diverged at step 4,0\n"
    "two,product_key.count=2,19,0.98 0.91,done,0\n"
    "none,,24,,done,0\n";

/// Two seeds.
constexpr const char* kSpread =
    "variant,test_ppl,test_ppl_least,test_ppl_most,state\n"
    "first,21.5,21.4,21.6,done\n"
    "middle,20.4,20.1,20.7,done\n"
    "late,20.5,20.2,20.8,done\n"
    "half,19.8,19.8,19.8,\"1 done, 1 waiting\"\n";

JudgedClaim judged(const std::string& claim, const char* table = kTable) {
  return judge(parse_claim(claim), parse_csv(table, "the test"));
}

std::string refusal(const std::string& claim, const char* table = kTable) {
  return message_of<UsageError>([&] { judged(claim, table); });
}

}  // namespace

TEST_CASE("orderings: what a claim says") {
  const Claim claim = parse_claim(" more slots :test_ppl: small > middle>=x  >= large");
  CHECK(claim.what == "more slots");
  CHECK(claim.column == "test_ppl");
  CHECK(claim.names == std::vector<std::string>{"small", "middle>=x", "large"});
  CHECK(claim.relations == std::vector<Relation>{Relation::greater, Relation::greater_or_equal});
  CHECK_FALSE(claim.difference);
  const Claim alike = parse_claim("equal reads: test_ppl: a ~2.5% b ~2.5% c");
  CHECK(alike.relations.empty());
  CHECK(alike.difference.value() == Approx(0.025));

  for (const char* wrong : {"a > b", "c: a > b", "w: c: a", "w: c: a >", "w: c: a = b", "w: c: a ~x% b", "w: c: a ~5 b",
                            "w: c: a ~-1% b", "w: c: a ~5% b ~6% c", "w: c: a ~5% b > c", ": c: a > b", "w: : a > b",
                            "w: c: ", "w: x: c: a > b", "w: c: a b c"}) {
    INFO(wrong);
    CHECK_THAT(message_of<UsageError>([&] { parse_claim(wrong); }),
               ContainsSubstring("a claim must be") && ContainsSubstring(wrong));
  }
}

TEST_CASE("orderings: a claim holds or does not hold by the numbers") {
  CHECK(judged("w: test_ppl: small > middle > large").verdict == Verdict::holds);
  CHECK(judged("w: test_ppl: large < middle < small").verdict == Verdict::holds);
  CHECK(judged("w: test_ppl: large > small").verdict == Verdict::fails);
  CHECK(judged("w: memory_usage: small >= middle > large").verdict == Verdict::holds);
  // Equal numbers.
  CHECK(judged("w: test_ppl: small >= small").verdict == Verdict::holds);
  CHECK(judged("w: test_ppl: small <= small").verdict == Verdict::holds);
  CHECK(judged("w: test_ppl: small > small").verdict == Verdict::fails);
  CHECK(judged("w: test_ppl: small < small").verdict == Verdict::fails);
  const JudgedClaim one_of_two = judged("w: test_ppl: small > large > middle");
  CHECK(one_of_two.verdict == Verdict::fails);
  CHECK(one_of_two.broken == std::vector<bool>{false, true});
  CHECK_FALSE(one_of_two.every_seed);

  // 21.25 is 6.25% above 20, 23.5 is 17.5%.
  CHECK(judged("w: test_ppl: large ~6.25% middle").verdict == Verdict::holds);
  CHECK(judged("w: test_ppl: middle ~6.2% large").verdict == Verdict::fails);
  CHECK(judged("w: test_ppl: large ~11% middle ~11% small").verdict == Verdict::fails);
  CHECK(judged("w: test_ppl: large ~17.5% middle ~17.5% small").verdict == Verdict::holds);
}

TEST_CASE("orderings: of several seeds the means are compared, and every pair of seeds") {
  const JudgedClaim clear = judged("w: test_ppl: first > middle", kSpread);
  CHECK(clear.verdict == Verdict::holds);
  CHECK(clear.every_seed == true);
  const JudgedClaim close = judged("w: test_ppl: late > middle", kSpread);
  CHECK(close.verdict == Verdict::holds);
  CHECK(close.every_seed == false);
  CHECK(judged("w: test_ppl: middle < late", kSpread).every_seed == false);
  CHECK(judged("w: test_ppl: middle < first", kSpread).every_seed == true);
  const JudgedClaim wrong = judged("w: test_ppl: middle > late", kSpread);
  CHECK(wrong.verdict == Verdict::fails);
  CHECK_FALSE(wrong.every_seed);
  // 0.5% of the means, 3.5% from 20.1 to 20.8.
  CHECK(judged("w: test_ppl: middle ~1% late", kSpread).every_seed == false);
  CHECK(judged("w: test_ppl: middle ~4% late", kSpread).every_seed == true);
}

TEST_CASE("orderings: what is not done cannot be told, and what is not there is an error") {
  const JudgedClaim diverged = judged("w: test_ppl: small > broken > large");
  CHECK(diverged.verdict == Verdict::unknown);
  CHECK_THAT(diverged.reason, ContainsSubstring("'broken'") && ContainsSubstring("diverged at step 4"));
  const JudgedClaim waiting = judged("w: test_ppl: first > half", kSpread);
  CHECK(waiting.verdict == Verdict::unknown);
  CHECK_THAT(waiting.reason, ContainsSubstring("1 done, 1 waiting"));
  const JudgedClaim without = judged("w: memory_usage: none ~1% small");
  CHECK(without.verdict == Verdict::unknown);
  CHECK_THAT(without.reason, ContainsSubstring("'none' has no memory_usage"));

  CHECK_THAT(refusal("w: test_ppl: small > larger"),
             ContainsSubstring("'larger'") && ContainsSubstring("small, middle, large"));
  CHECK_THAT(refusal("w: test_bpc: small > large"),
             ContainsSubstring("'test_bpc'") && ContainsSubstring("test_ppl, memory_usage"));
  CHECK_THAT(refusal("w: memory_usage: small > two"),
             ContainsSubstring("one number") && ContainsSubstring("0.98 0.91"));
  CHECK_THAT(refusal("w: a: small > two", "variant,a\nsmall,1\n"), ContainsSubstring("'state'"));
}

TEST_CASE("orderings: text and JSON") {
  const std::vector<JudgedClaim> claims{
      judged("more slots: test_ppl: small > middle > large"), judged("fewer slots: test_ppl: small < large"),
      judged("divergence: test_ppl: small < broken"), judged("position: test_ppl: late > middle", kSpread)};
  const std::string text = table_of(claims);
  CHECK_THAT(text, ContainsSubstring("holds           more slots\n") &&
                       ContainsSubstring("test_ppl: small 23.5000 > middle 21.2500 > large 20.0000\n") &&
                       ContainsSubstring("does not hold   fewer slots\n") &&
                       ContainsSubstring("small 23.5000 not < large 20.0000\n") &&
                       ContainsSubstring("cannot be told  divergence\n") &&
                       ContainsSubstring("small 23.5000 < broken -\n") &&
                       ContainsSubstring("in the mean; ranges of seeds overlap\n"));
  CHECK_THAT(text, EndsWith("\n2 of 4 hold\n"));

  const nlohmann::json object = json_of(claims);
  CHECK(object.at("hold") == 2);
  CHECK(object.at("claims").at(0).at("verdict") == "holds");
  CHECK(object.at("claims").at(1).at("verdict") == "does not hold");
  CHECK(object.at("claims").at(1).at("every_seed").is_null());
  CHECK(object.at("claims").at(2).at("figures").at(1).at("mean").is_null());
  CHECK(object.at("claims").at(3).at("every_seed") == false);
  CHECK(object.at("claims").at(3).at("figures").at(0).at("most") == 20.8);
}

TEST_CASE("orderings: as a user calls it, strict or not", "[night]") {
  const TemporaryFolder folder;
  put_file(folder / "sweep.csv", kTable);
  const std::string right = "more slots: test_ppl: small > large", wrong = "fewer slots: test_ppl: small < large";
  const auto run = [&](Arguments more) {
    more.insert(more.begin(), {"orderings", folder.path().string()});
    return run_engram(more);
  };
  CHECK(run({"--claim", right, "--strict"}).exit_code == 0);
  const ProcessResult lenient = run({"--claim", right, "--claim", wrong});
  CHECK(lenient.exit_code == 0);
  CHECK_THAT(lenient.out, ContainsSubstring("1 of 2 hold"));
  const ProcessResult strict = run({"--claim", right, "--claim", wrong, "--strict"});
  CHECK(strict.exit_code == 1);
  CHECK(strict.out == lenient.out);
  CHECK_THAT(strict.err, ContainsSubstring("--strict") && ContainsSubstring("all 2 claims must hold, got 1"));
  // What cannot be told does not hold.
  CHECK(run({"--claim", "w: test_ppl: small > broken", "--strict"}).exit_code == 1);
  CHECK(nlohmann::json::parse(run({"--claim", right, "--json"}).out).at("hold") == 1);
  CHECK(run({"--claim", "w: test_ppl: small > larger"}).exit_code == 2);
  CHECK(run({}).exit_code == 2);
  CHECK(run_engram({"orderings", "--claim", right, "--claim", wrong, folder.path().string()}).out == lenient.out);
  const ProcessResult missing = run_engram({"orderings", (folder / "no").string(), "--claim", right});
  CHECK(missing.exit_code == 1);
  CHECK_THAT(missing.err, ContainsSubstring("the folder of a sweep"));
}

TEST_CASE("csv: fields come back as they were written, and what is no table is refused") {
  const CsvTable table = parse_csv("a,\"b,\"\"c\",d\r\n1,,\"two\nlines\"\r\n,x,\n", "the test");
  CHECK(table.names == std::vector<std::string>{"a", "b,\"c", "d"});
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0] == std::vector<std::string>{"1", "", "two\nlines"});
  CHECK(table.rows[1] == std::vector<std::string>{"", "x", ""});
  CHECK(table.column("d") == 2);
  CHECK(table.column("e") == 3);
  CHECK(parse_csv("a,b\n1,2", "the test").rows.size() == 1);

  const auto refused = [](std::string_view bytes) {
    return message_of<FileError>([&] { parse_csv(bytes, "the test"); });
  };
  CHECK_THAT(refused(""), ContainsSubstring("the test") && ContainsSubstring("got nothing"));
  CHECK_THAT(refused("a,b\n1\n"), ContainsSubstring("row 1 must have 2 fields, got 1"));
  CHECK_THAT(refused("a,b\n1,\"2\n"), ContainsSubstring("not closed"));
  CHECK_THAT(refused("a,b\n1,2\"3\n"), ContainsSubstring("line 2") && ContainsSubstring("quote"));
}

}  // namespace engram::harness::ordering_test
