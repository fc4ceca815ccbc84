/// JSON of others: what the library would take by recursion, however deep, is refused before.

#include "core/files/parse_json.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"
#include "tests/harness/catch.hpp"

namespace engram::parse_json_test {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST_CASE("parse json: what is valid and not too deep is read", "[json]") {
  CHECK(parse_json(R"({"a": [1, "]]]][[[[\"[{"], "b": {}})").at("a").at(1) == "]]]][[[[\"[{");
  CHECK(parse_json(nested(kDeepestJson)).is_array());
  // Brackets side by side are not deep.
  std::string flat = "[";
  for (int i = 0; i < 1000; ++i) flat += "[],";
  CHECK(parse_json(flat + "[]]").size() == 1001);
}

TEST_CASE("parse json: what is too deep, has a zero byte or is none is refused", "[json]") {
  for (const std::string& wrong : {nested(kDeepestJson + 1), nested(1'000'000), std::string(1'000'000, '['),
                                   std::string("{}\0", 3), std::string("{\"a\": [1}"), std::string("\"\\")}) {
    CHECK_THROWS_AS(parse_json(wrong), nlohmann::json::parse_error);
    CHECK(parse_json_or_discard(wrong).is_discarded());
  }
  CHECK_THROWS_AS(parse_json("[1e999]"), nlohmann::json::out_of_range);
  CHECK(parse_json_or_discard("[1e999]").is_discarded());
}

TEST_CASE("parse json: integers are integers of 64 bits, not whatever can be cast to one", "[json]") {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto read = [](const char* text) { return integer_of<std::int64_t>(parse_json(text)); };
  CHECK(read("0") == 0);
  CHECK(read("-9223372036854775808") == kLeast);
  CHECK(read("9223372036854775807") == kMost);
  CHECK(integer_of<std::uint64_t>(parse_json("18446744073709551615")) == std::numeric_limits<std::uint64_t>::max());
  CHECK(integer_of<std::uint64_t>(nlohmann::json(std::int64_t{7})) == 7);
  for (const char* const wrong : {"9223372036854775808", "103888888888888888888888888888888888888888888888", "1e47",
                                  "-1e300", "1.5", "true", "null", "\"1\"", "[1]", "{}"})
    CHECK_THROWS_AS(read(wrong), nlohmann::json::exception);
  CHECK_THROWS_AS(integer_of<std::uint64_t>(parse_json("-1")), nlohmann::json::exception);
}

}  // namespace
}  // namespace engram::parse_json_test
