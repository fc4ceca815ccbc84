#include "core/names.hpp"

#include <cstdint>
#include <string>

#include "tests/harness/catch.hpp"

namespace engram::names_test {
namespace {

enum class Fruit : std::uint8_t { apple, pear, plum };
constexpr auto names_of(Fruit) {
  return std::to_array<Named<Fruit>>({{Fruit::apple, "apple"}, {Fruit::pear, "william"}, {Fruit::plum, "plum"}});
}
enum class Nameless : std::uint8_t { one };

static_assert(HasNames<Fruit>);
static_assert(!HasNames<Nameless>);
static_assert(name_of(Fruit::pear) == "william");

TEST_CASE("names: an enumerator and its name lead to each other", "[core]") {
  for (const auto& [value, name] : names_of(Fruit{})) {
    CHECK(name_of(value) == name);
    CHECK(find_named<Fruit>(name) == value);
    CHECK(parse_named<Fruit>("fruit", name) == value);
  }
  CHECK(name_of(static_cast<Fruit>(7)) == "?");
  CHECK_FALSE(find_named<Fruit>("pear").has_value());
  CHECK(choices_text<Fruit>() == "apple, william or plum");
  try {
    parse_named<Fruit>("shop: --fruit", "pear");
    FAIL("a name that nobody has must be refused");
  } catch (const UsageError& error) {
    CHECK(std::string(error.what()) == "shop: --fruit must be apple, william or plum, got 'pear'");
  }
}

}  // namespace
}  // namespace engram::names_test
