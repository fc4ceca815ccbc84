/// What the options of a sweep mean: variants, their names, seeds.

#include "apps/studies/sweeps/sweep_plan.hpp"

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::sweep_plan_test {
namespace {

using Names = std::vector<std::string>;

Names names_of(const std::vector<SweepVariant>& variants) {
  Names names;
  for (const SweepVariant& variant : variants) names.push_back(variant.name);
  return names;
}

std::string error_of(const std::vector<std::string>& vary, const std::vector<std::string>& variants = {},
                     const std::vector<std::string>& names = {}) {
  return message_of<UsageError>([&] { plan_variants(vary, variants, names); });
}

}  // namespace

TEST_CASE("several --vary make a grid, the last one changing fastest") {
  const auto grid = plan_variants({"model.slots=16, 32", "schedule.rate=1e-3,0.5,2"}, {}, {});
  CHECK(names_of(grid) == Names{"slots-16_rate-1e-3", "slots-16_rate-0.5", "slots-16_rate-2", "slots-32_rate-1e-3",
                                "slots-32_rate-0.5", "slots-32_rate-2"});
  CHECK(grid[4].overrides == Names{"model.slots=32", "schedule.rate=0.5"});
  CHECK(plan_variants({"model.pad=mask"}, {}, {}).front().name == "pad-mask");
}

TEST_CASE("semicolons separate values that have commas") {
  const auto lists = plan_variants({"model.cutoffs=20000,60000;20000,40000,200000"}, {}, {});
  REQUIRE(lists.size() == 2);
  CHECK(lists[0].overrides == Names{"model.cutoffs=20000,60000"});
  CHECK(lists[1].overrides == Names{"model.cutoffs=20000,40000,200000"});
  CHECK(lists[1].name == "cutoffs-20000-40000-200000");
  const auto one = plan_variants({"model.cutoffs=1,2;"}, {}, {});
  REQUIRE(one.size() == 1);
  CHECK(one[0].overrides == Names{"model.cutoffs=1,2"});
}

TEST_CASE("single variants have several keys, and follow the grid") {
  const auto variants =
      plan_variants({"model.slots=4"},
                    {"ff:model.mode=ff_attn,model.inner=384,model.cutoffs=10,20,model.layers=4", "plain", "bare:"}, {});
  CHECK(names_of(variants) == Names{"slots-4", "ff", "plain", "bare"});
  CHECK(variants[1].overrides ==
        Names{"model.mode=ff_attn", "model.inner=384", "model.cutoffs=10,20", "model.layers=4"});
  CHECK(variants[2].overrides.empty());
  CHECK(variants[3].overrides.empty());
  CHECK(names_of(plan_variants({}, {}, {})) == Names{"base"});
}

TEST_CASE("variants of the grid can be named") {
  const auto named = plan_variants({"model.slots=4,8"}, {"c"}, {"a", "b"});
  CHECK(names_of(named) == Names{"a", "b", "c"});
  CHECK(named[1].overrides == Names{"model.slots=8"});
  CHECK_THAT(error_of({"model.slots=4,8"}, {}, {"a"}), ContainsSubstring("2 variants") && ContainsSubstring("got 1"));
  CHECK_THAT(error_of({"model.slots=4,8"}, {}, {"a", "a"}), ContainsSubstring("'a' twice"));
}

TEST_CASE("options that make no sense are refused") {
  for (const char* wrong : {"slots=3", "model.slots", "model.slots=", "=3", ".slots=3", "model.=3", ""})
    CHECK_THAT(error_of({wrong}), ContainsSubstring("--vary must have section.key=value") && ContainsSubstring(wrong));
  CHECK_THAT(error_of({"model.slots=3,,4"}), ContainsSubstring("between any two commas") && ContainsSubstring("3,,4"));
  CHECK_THAT(error_of({"model.slots=3", "model.slots=4"}), ContainsSubstring("model.slots twice"));
  const std::string many = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22";
  CHECK_THAT(error_of({"model.slots=" + many, "model.heads=" + many, "model.layers=" + many}),
             ContainsSubstring("at most 10000 variants together, got 10648 by model.layers"));
  // 400 variants of two settings with 511 letters each.
  const std::string letters(500, 'x');
  std::string values = letters;
  for (int i = 1; i < 20; ++i) values += "," + letters;
  CHECK_THAT(
      error_of({"model.slots=" + values, "model.heads=" + values}),
      ContainsSubstring("at most 262144 letters together, got 400 variants of up to 1022 letters by model.heads"));
  CHECK_THAT(error_of({"model.slots=3,3"}), ContainsSubstring("'slots-3' twice"));
  CHECK_THAT(error_of({}, {"a:model.slots"}), ContainsSubstring("NAME:section.key=value"));
  CHECK_THAT(error_of({}, {"a:slots=3"}), ContainsSubstring("--variant must have section.key=value"));
  CHECK_THAT(error_of({}, {"a:model.slots=3,model.slots=4"}), ContainsSubstring("model.slots twice"));
  for (const char* name : {"a/b", "..", ".hidden", "", "a b", "\xc3\xa9"})
    CHECK_THAT(error_of({}, {std::string(name) + ":model.slots=3"}), ContainsSubstring("letters, digits"));
}

TEST_CASE("no variant takes the place of the sweep's tables") {
  for (const char* name : {"sweep.csv", "runs.csv", "sweep.csv.partial"})
    CHECK_THAT(error_of({}, {std::string(name) + ":model.slots=3"}), ContainsSubstring("which the sweep writes"));
}

TEST_CASE("seeds are whole numbers, each once") {
  CHECK(parse_seeds("1,2, 30") == std::vector<std::uint64_t>{1, 2, 30});
  CHECK(parse_seeds("").empty());
  for (const char* wrong : {"1,", "a", "-1", "1,1", "1.5"}) {
    INFO(wrong);
    CHECK_THAT(message_of<UsageError>([&] { parse_seeds(wrong); }),
               ContainsSubstring("--seeds") && ContainsSubstring(wrong));
  }
}

}  // namespace engram::harness::sweep_plan_test
