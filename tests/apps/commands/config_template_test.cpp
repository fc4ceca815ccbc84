/// `engram keys --toml`: what it prints is a configuration that can be trained.

#include "apps/run/config/config_template.hpp"
#include "apps/run/config/run_config_file.hpp"

#include <string>

#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/config_review.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::config_template_test {

TEST_CASE("config template: of every family it is a whole configuration, which a run can be started with") {
  const RunFolder folder;
  for (const ModelFamily family : kModelFamilies) {
    CAPTURE(name_of(family));
    const std::string toml = config_template(family);
    CHECK(to_toml(parse_run_config(toml, "template")) == to_toml(parse_run_config(config_help(family), "keys")));
    CHECK(config_warnings(parse_run_config(toml, "template")).empty());

    // As it is, but for its size.
    TrainingRunOptions options = run_options(folder, std::string(name_of(family)));
    options.config = put_file(folder / "template.toml", toml);
    options.overrides = {"schedule.steps=2", "training.batch=2", "training.block=8", "model.width=24"};
    run_training(options, never());
    CHECK(std::filesystem::exists(checkpoint_path(options.out, CheckpointKind::newest)));
  }
}

TEST_CASE("config template: every key has its meaning and its range above it; memories are comments that are valid") {
  for (const ModelFamily family : kModelFamilies) {
    std::string toml = config_template(family);
    for (const ConfigKey& key : config_keys(family)) {
      CAPTURE(name_of(family), key.full_name());
      std::size_t at = toml.find("\n" + std::string(key.name) + " = ");
      if (at == std::string::npos) at = toml.find("\n#" + std::string(key.name) + " = ");
      REQUIRE(at != std::string::npos);
      const std::string said = toml.substr(toml.rfind("\n\n", at), at - toml.rfind("\n\n", at));
      CHECK_THAT(said, StartsWith("\n\n# ") || StartsWith("\n\n["));
      const std::string bounds[] = {"from ", "at least", "above", "in [", "in (", "divisor", " or ", "0 for"};
      if (key.rule == "a number" || key.rule == "an integer")
        CHECK(std::ranges::any_of(bounds, [&](const std::string& one) { return said.find(one) != std::string::npos; }));
    }
    if (family == ModelFamily::recurrent) continue;
    const std::size_t memories = toml.find("[product_key]"), end = toml.find("\n[", memories);
    for (std::size_t at = toml.find("\n#", memories); at < end; at = toml.find("\n#", at + 1))
      if (toml[at + 2] != ' ') toml.erase(at + 1, 1);
    CHECK(parse_run_config(toml, "template").model.memories().any());
  }
}

TEST_CASE("config template: the command prints it, for families that there are") {
  CHECK(run_engram({"keys", "--toml", "recurrent"}).out == config_template(ModelFamily::recurrent));
  const std::string help = run_engram({"keys", "--help"}).out, refused = error_of({"keys", "--toml", "lstm"}, 2);
  for (const ModelFamily family : kModelFamilies) {
    CHECK_THAT(help, ContainsSubstring(std::string(name_of(family))));
    CHECK_THAT(refused, ContainsSubstring(std::string(name_of(family))));
  }
}

}  // namespace engram::harness::config_template_test
