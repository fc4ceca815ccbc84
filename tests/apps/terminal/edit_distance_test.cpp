/// Names that are nearest to a wrong one, however long that is.

#include "apps/terminal/edit_distance.hpp"

#include <string>
#include <vector>

#include "apps/run/config/run_config_file.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::edit_distance_test {
namespace {

TEST_CASE("edit distance: what is longer than any name is compared by its beginning") {
  CHECK(least_distance("head", "heads") == 1);
  CHECK(least_distance("heads", "") == 5);
  CHECK(is_near("hedas", "heads"));
  const std::string lengthy(2'000'000, 'a');
  CHECK(compared_part(lengthy).size() < 100);
  CHECK(compared_part("model.heads") == "model.heads");
  CHECK_FALSE(is_near(lengthy, "heads"));
  CHECK_FALSE(is_near("heads", lengthy));
  // Compared as a whole with every key these would take half a minute.
  const auto refusal = [](const std::string& toml, const std::vector<std::string>& settings) {
    return harness::message_of<UsageError>([&] { parse_run_config(toml, "test.toml", settings); });
  };
  CHECK_THAT(refusal("[model]\n" + lengthy + " = 3\n", {}), ContainsSubstring("is no key"));
  CHECK_THAT(refusal("[" + lengthy + "]\nheads = 3\n", {}), ContainsSubstring("is no section"));
  CHECK_THAT(refusal("", {"model." + lengthy + "=1"}), ContainsSubstring("is no key"));
}

}  // namespace
}  // namespace engram::edit_distance_test
