/// Every key of every family at the extremes of numbers: the configuration is refused by name, or its model can be
/// counted. The keys come from the table itself; nothing is allocated, nothing is trained.

#include <limits>
#include <memory>

#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/run/cost/training_state.hpp"
#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::config_bounds_test {
namespace {

using harness::message_of;

const std::string kRest = R"(
[schedule]
rate = 0.1
steps = 10
[training]
batch = 2
block = 4
)";

/// Small valid configurations of a family, so different that every key of the model counts in one of them.
std::vector<std::string> small_configs(ModelFamily family) {
  const std::string memory =
      "[product_key]\nsubkeys = 4\nheads = 2\nselected = 2\nquery_width = 4\nplacement = \"after\"\n";
  const std::string first = "layers = 3\nwidth = 12\nheads = 2\n", one_memory = memory + "count = 1\n",
                    flat = memory + "layers = [2]\nkeys = \"flat\"\nquery_network = \"mlp\"\nquery_hidden = [6]\n";
  switch (family) {
    case ModelFamily::all_attention:
      return {first + "slots = 4\nmax_span = 8\n" + one_memory,
              first + "memory_mode = \"transformer\"\ninner = 8\nmax_span = 8\ncutoffs = [5]\n" + flat};
    case ModelFamily::transformer_xl:
      return {
          first + "inner = 8\nmemory = 4\n" + one_memory,
          first + "inner = 8\ndepth = 5\npositions = \"shaw\"\nposition_rows = 9\ncutoffs = [5]\ndivisor = 2\n" + flat};
    case ModelFamily::product_key:
      return {first + one_memory, first + "inner = 8\nposition_rows = 9\n" + flat};
    case ModelFamily::recurrent:
      return {"width = 12\n", "width = 12\nreadout = \"n_gram\"\nparts = 2\noutput_width = 5\n",
              "width = 12\nreadout = \"recurrent_memory\"\nencoder = \"hornn_gated\"\nwindow = 3\n",
              "width = 12\nreadout = \"identity\"\nencoder = \"qrnn\"\nlayers = 2\ncutoffs = [5]\ndivisor = 2\n"};
  }
  return {};
}

RunConfig parse(ModelFamily family, const std::string& model, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(text("[model]\nfamily = \"", name_of(family), "\"\n", model, kRest), "small.toml", overrides);
}

/// What `engram count` does with a configuration, but for its text.
std::int64_t counted_bytes(RunConfig config) {
  if (config.model.vocabulary() == 0) config.model.set_vocabulary(100);
  const std::int64_t parameters = count_parameters(*make_model(config.model)).total;
  CHECK(parameters > 0);
  const bool may_have_tables = config.model.family != ModelFamily::recurrent;
  const TableSizes tables = may_have_tables ? table_sizes(config.model.memories(), config.model.width(),
                                                          config.model.layers(), config.optimizer.tables)
                                            : TableSizes{};
  return training_state_bytes(parameters, tables, config.optimizer.kind);
}

constexpr const char* kExtremes[] = {
    "",       "0",   "-1",  "1",     "2147483648",          "4611686018427387904",  "1e308",
    "-1e308", "nan", "inf", "1e-46", "9223372036854775807", "-9223372036854775808", "9223372036854775808"};

TEST_CASE("configurations: every key at the extremes of numbers is refused, or counts") {
  for (const ModelFamily family : kModelFamilies) {
    const std::vector<std::string> configs = small_configs(family);
    for (const std::string& config : configs) {
      REQUIRE(counted_bytes(parse(family, config)) > 0);
      for (const ConfigKey& key : config_keys(family)) {
        const bool of_model = key.section == "model" || key.section == "product_key";
        if (&config != &configs.front() && !of_model) continue;  // the same in all of them
        for (const char* const extreme : kExtremes) {
          const std::string override = key.full_name() + "=" + extreme;
          CAPTURE(name_of(family), override);
          try {
            const std::int64_t bytes = counted_bytes(parse(family, config, {override}));
            CHECK(bytes > 0);
          } catch (const UsageError& error) {
            CHECK_THAT(error.what(), ContainsSubstring("small.toml") || ContainsSubstring("--set " + override));
          }
        }
      }
    }
  }
}

TEST_CASE("configurations: no number is without bounds, nor one that f32 does not hold") {
  for (const ModelFamily family : kModelFamilies) {
    for (const std::string& config : small_configs(family)) {
      for (const ConfigKey& key : config_keys(family)) {
        const bool of_number = key.rule == "a number";
        if (!of_number && key.rule != "an integer" && !key.is_list) continue;
        const std::vector<std::string> beyond =
            of_number ? std::vector<std::string>{"1e308", "-1e308", "3.5e38", "nan", "inf", "-inf"}
                      : std::vector<std::string>{"4611686018427387904", "9223372036854775807", "-9223372036854775808"};
        for (const std::string& value : beyond) {
          CAPTURE(name_of(family), key.full_name(), value);
          CHECK_THROWS_AS(parse(family, config, {key.full_name() + "=" + value}), UsageError);
        }
        CAPTURE(key.full_name());
        if (key.name.ends_with("dropout"))
          CHECK_THROWS_AS(parse(family, config, {key.full_name() + "=0.999995"}), UsageError);
        for (const std::string_view divisor : {"epsilon", "norm_epsilon", "rate"})
          if (key.name == divisor) CHECK_THROWS_AS(parse(family, config, {key.full_name() + "=1e-46"}), UsageError);
      }
    }
  }
}

TEST_CASE("configurations: sizes are refused by name, the rule says the bound, in a checkpoint too") {
  const auto refusal = [](ModelFamily family, const std::string& override) {
    return message_of<UsageError>([&] { parse(family, small_configs(family).front(), {override}); });
  };
  CHECK_THAT(refusal(ModelFamily::all_attention, "model.slots=4611686018427387904"),
             ContainsSubstring("model: slots must be from 1 to 2147483647 for memory_mode all") &&
                 ContainsSubstring("got 4611686018427387904"));
  CHECK_THAT(refusal(ModelFamily::all_attention, "model.layers=1000000"),
             ContainsSubstring("model: layers must be from 1 to 4096, got 1000000"));
  CHECK_THAT(refusal(ModelFamily::recurrent, "model.embedding_width=4611686018427387904"),
             ContainsSubstring("embedding_width must be from 0 to 16777216"));
  CHECK_THAT(refusal(ModelFamily::transformer_xl, "model.clamp=-3"), ContainsSubstring("clamp must be from -1 to"));
  CHECK(parse(ModelFamily::transformer_xl, small_configs(ModelFamily::transformer_xl).front(), {"model.clamp=-1"})
            .model.transformer_xl.clamp == -1);
  CHECK_THAT(refusal(ModelFamily::product_key, "training.validate_blocks=1000000000000000000"),
             ContainsSubstring("validate_blocks must be from 1 to 2147483647"));
  CHECK_THAT(message_of<UsageError>([] {
               parse(ModelFamily::all_attention, small_configs(ModelFamily::all_attention).front(),
                     {"training.batch=16777216", "training.block=1024"});
             }),
             ContainsSubstring("training: batch must be at most 2097151 streams, with blocks of 1024 tokens") &&
                 ContainsSubstring("in --set training.batch=16777216, --set training.block=1024, over small.toml"));
  CHECK_THAT(refusal(ModelFamily::all_attention, "optimizer.epsilon=1e-46"),
             ContainsSubstring("epsilon must be from 1.2e-38 to 3e+38"));
  CHECK_THAT(refusal(ModelFamily::all_attention, "model.dropout=0.999995"),
             ContainsSubstring("dropout must be in [0, 1 - 2^-17), got 0.999995"));

  RunConfig stored = parse(ModelFamily::transformer_xl, small_configs(ModelFamily::transformer_xl).front());
  stored.model.transformer_xl.inner = std::numeric_limits<std::int64_t>::max();
  CHECK_THAT(message_of<UsageError>([&] { parse_run_config(to_toml(stored), "the metadata of 'x'"); }),
             ContainsSubstring("inner must be from 1 to 2147483647, got 9223372036854775807") &&
                 ContainsSubstring("in the metadata of 'x'"));
}

TEST_CASE("configurations: models within the bounds that are too large to count are refused, not wrapped") {
  RunConfig config = parse(ModelFamily::all_attention, small_configs(ModelFamily::all_attention).back(),
                           {"model.width=16777216", "model.inner=2147483647", "model.layers=64"});
  CHECK_THAT(message_of<UsageError>([&] { counted_bytes(config); }),
             ContainsSubstring("at most 2^60 - 1 parameters") && ContainsSubstring("2147483647"));
  CHECK_THAT(
      message_of<UsageError>([] { training_state_bytes(std::int64_t{1} << 59, TableSizes(), OptimizerKind::adam); }),
      ContainsSubstring("less than 2^63 bytes"));
  CHECK(training_state_bytes(1000, TableSizes(), OptimizerKind::adam) == 16000);
}

}  // namespace
}  // namespace engram::config_bounds_test
