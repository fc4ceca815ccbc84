/// Parameters of models with product-key memories: every number of [product-key 5.2, 5.3], from
/// modules that have taken no memory; the configs; what `engram count` says about tables.

#include <array>
#include <filesystem>
#include <set>
#include <utility>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::product_key_count_test {
namespace {

const std::filesystem::path kFolder = std::filesystem::path(ENGRAM_SOURCE_DIR) / "apps/configs/product-key";

std::string path_of(const std::string& name) { return (kFolder / (name + ".toml")).string(); }

ParameterCount count_of(const ProductKeyTransformerOptions& model) {
  return count_parameters(*make_model({.family = ModelFamily::product_key, .product_key = model}));
}

ProductKeyTransformerOptions paper_model(std::int64_t layers, std::int64_t width, std::int64_t memories) {
  ProductKeyTransformerOptions model{.vocabulary = 60'000, .layers = layers, .width = width, .heads = 16};
  model.memories.count = memories;
  return model;
}

/// Of one memory by itself: what a model has more when it stands behind a layer.
ParameterCount memory_alone(ProductKeyTransformerOptions model) {
  model.memories.count = 0;
  model.memories.layers = {5};
  model.memories.placement = MemoryPlacement::after;
  ParameterCount with = count_of(model);
  model.memories.layers = {};
  const ParameterCount without = count_of(model);
  for (std::size_t role = 0; role < with.by_role.size(); ++role) with.by_role[role] -= without.by_role[role];
  with.total -= without.total;
  return with;
}

TEST_CASE("product-key memory: totals of the paper's models", "[product-key][T14]") {
  struct Row {
    std::int64_t layers, width;
    std::array<std::int64_t, 4> totals;  // 0 to 3 memories
  };
  constexpr Row kRows[] = {{12, 1024, {213'181'024, 476'374'624, 739'568'224, 1'002'761'824}},
                           {16, 1024, {263'565'920, 526'759'520, 789'953'120, 1'053'146'720}},
                           {24, 1024, {364'335'712, 627'529'312, 890'722'912, 1'153'916'512}},
                           {12, 1600, {465'772'000, 869'045'920, 1'272'319'840, 1'675'593'760}},
                           {16, 1600, {588'735'200, 992'009'120, 1'395'283'040, 1'798'556'960}},
                           {24, 1600, {834'661'600, 1'237'935'520, 1'641'209'440, 2'044'483'360}}};
  for (const Row& row : kRows)
    for (std::int64_t memories = 0; memories <= 3; ++memories) {
      CAPTURE(row.layers, row.width, memories);
      const std::int64_t total = row.totals.at(static_cast<std::size_t>(memories));
      ProductKeyTransformerOptions model = paper_model(row.layers, row.width, memories);
      CHECK(count_of(model).total == total);
      model.memories.query_width = 256;
      CHECK(count_of(model).total == total - memories * (row.width == 1024 ? 1'575'936 : 2'165'760));
    }
}

TEST_CASE("product-key memory: parameters of one memory, by role", "[product-key][T14]") {
  for (const auto& [width, values, query, total, half] :
       {std::array<std::int64_t, 5>{1024, 268'435'456, 2'099'200, 271'587'328, 270'011'392},
        std::array<std::int64_t, 5>{1600, 419'430'400, 3'278'848, 423'761'920, 421'596'160}}) {
    CAPTURE(width);
    ProductKeyTransformerOptions model = paper_model(12, width, 0);
    const ParameterCount one = memory_alone(model);
    CHECK(one.total == total);
    CHECK(one.of(ParameterRole::memory_values) == values);
    CHECK(one.of(ParameterRole::memory_keys) == 1'048'576);
    CHECK(one.of(ParameterRole::memory_query) == query + 4'096);
    CHECK(one.of(ParameterRole::memory_output) == 0);
    CHECK(one.of(ParameterRole::feed_forward) == 0);
    model.memories.query_width = 256;
    CHECK(memory_alone(model).total == half);
  }
}

TEST_CASE("product-key memory: parameters of the ablations, product and flat keys", "[product-key][T14]") {
  struct Row {
    std::int64_t subkeys, memory, flat_keys;
  };
  constexpr Row kRows[] = {{128, 9'705'472, 33'554'432},      {256, 35'133'440, 134'217'728},
                           {384, 77'338'624, 301'989'888},    {512, 136'321'024, 536'870'912},
                           {768, 304'617'472, 1'207'959'552}, {1024, 540'022'784, 2'147'483'648}};
  for (const Row& row : kRows) {
    CAPTURE(row.subkeys);
    const std::vector<std::string> size{"product_key.subkeys=" + std::to_string(row.subkeys)};
    const RunConfig product = load_run_config(path_of("ablation-memory"), size);
    const RunConfig flat = load_run_config(path_of("ablation-flat-keys"), size);
    CHECK(memory_alone(product.model.product_key).total == row.memory);
    CHECK(memory_alone(flat.model.product_key).of(ParameterRole::memory_keys) == row.flat_keys);
    // The memory replaces a feed-forward sublayer of 8 d^2 + 5 d.
    CHECK(count_of(product.model.product_key).total == 49'957'472 + row.memory - (8 * 512 * 512 + 5 * 512));
  }
}

TEST_CASE("product-key memory: gates, projections and shared tables count what they have", "[product-key]") {
  ProductKeyTransformerOptions model{.vocabulary = 9, .layers = 4, .width = 8, .heads = 2};
  model.memories = {.count = 2, .subkeys = 3, .heads = 2, .selected = 2, .query_width = 4};
  const auto of = [&](ParameterRole role) { return count_of(model).of(role); };
  CHECK(of(ParameterRole::memory_values) == 2 * 9 * 8);
  const std::int64_t tensors = count_of(model).tensors;
  model.memories.shared_values = true;
  CHECK(of(ParameterRole::memory_values) == 9 * 8);
  CHECK(of(ParameterRole::memory_keys) == 2 * 2 * 3 * 4);
  CHECK(count_of(model).tensors == tensors - 1);
  model.memories.gate = MemoryGate::scalar;
  CHECK(of(ParameterRole::memory_output) == 2 * 8);
  model.memories.gate = MemoryGate::swish;
  model.memories.value_width = 5;
  CHECK(of(ParameterRole::memory_values) == 9 * 5);
  CHECK(of(ParameterRole::memory_output) == 2 * 2 * 8 * 5);
  model.memories.factors = 3;
  model.memories.query_width = 6;
  CHECK(of(ParameterRole::memory_values) == 27 * 5);
  CHECK(of(ParameterRole::memory_keys) == 2 * 2 * 3 * 6);
}

TEST_CASE("product-key memory: every config has the parameters and the settings of the paper", "[product-key][T14]") {
  struct Row {
    const char* name;
    std::int64_t total;
    std::vector<std::int64_t> layers;  // with a memory
  };
  const Row kRows[] = {{"12-layers-1024-1-memory", 476'374'624, {6}},
                       {"12-layers-1024-2-memories", 739'568'224, {4, 8}},
                       {"12-layers-1024-3-memories", 1'002'761'824, {3, 6, 9}},
                       {"16-layers-1024-1-memory", 526'759'520, {8}},
                       {"16-layers-1024-2-memories", 789'953'120, {6, 12}},
                       {"24-layers-1024-1-memory", 627'529'312, {12}},
                       {"12-layers-1600-1-memory", 869'045'920, {6}},
                       {"16-layers-1600-1-memory", 992'009'120, {8}},
                       {"ablation-memory", 184'178'784, {5}},
                       {"ablation-flat-keys", 720'001'120, {5}}};
  std::set<std::string> hosts;  // files with memories must be in the table
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() != ".toml") continue;
    const RunConfig config = load_run_config(entry.path());
    if (config.model.product_key.memories.any()) hosts.insert(entry.path().stem().string());
  }
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    CHECK(hosts.erase(row.name) == 1);
    const RunConfig config = load_run_config(path_of(row.name));
    const ProductKeyTransformerOptions& model = config.model.product_key;
    CHECK(count_parameters(*make_model(config.model)).total == row.total);
    CHECK(model.memories.memory_layers(model.layers) == row.layers);
    CHECK(model.memories.placement == MemoryPlacement::replace);
    CHECK(model.memories.keys == (row.name == std::string("ablation-flat-keys") ? KeyKind::flat : KeyKind::product));
    CHECK(model.memories.slots() == 512 * 512);
    CHECK(model.memories.heads == 4);
    CHECK(model.memories.selected == 32);
    CHECK(model.memories.query_width == 512);
    CHECK(model.memories.query_network == QueryNetworkKind::linear);
    CHECK(model.memories.query_norm == QueryNorm::batch);
    CHECK(model.memories.value_init == ValueStart::normal);
    CHECK_FALSE(model.memories.shared_values);
    const TableOptimizerOptions& tables = config.optimizer.tables;
    CHECK(tables.kind == TableKind::adam);
    CHECK(tables.mode == TableMode::lazy);
    CHECK(tables.rate == 1e-3);
    CHECK_FALSE(tables.follows_schedule);
    CHECK(tables.beta1 == 0.9);
    CHECK(tables.beta2 == 0.999);
    CHECK(tables.epsilon == 1e-8);
    CHECK(tables.epsilon_at == EpsilonAt::uncorrected);
    CHECK(tables.weight_decay == 0);
    CHECK(tables.clip == 5);
    // All else is as without memories.
    const std::string name = row.name;
    const std::string host = model.layers == 6 ? "ablation-host" : name.substr(0, name.rfind('-', name.rfind('-') - 1));
    RunConfig plain = load_run_config(path_of(host));
    plain.model.product_key.memories = model.memories;
    plain.optimizer.tables = tables;
    CHECK(to_toml(plain) == to_toml(config));
  }
  CHECK(hosts.empty());
}

TEST_CASE("product-key memory: the small config has one memory more than its host", "[product-key]") {
  const std::string folder = kFolder.parent_path().string();
  const auto total = [&](const std::string& name) {
    RunConfig config = load_run_config(folder + "/kjv/" + name);
    config.model.set_vocabulary(83);
    return count_parameters(*make_model(config.model)).total;
  };
  const std::int64_t memory = 128 * 128 * 96 + 4 * 128 * 64 + (96 + 1) * 4 * 64 + 2 * 4 * 64;
  CHECK(total("kjv-product-key.toml") - total("kjv-product-key-host.toml") == memory - (8 * 96 * 96 + 5 * 96));
}

TEST_CASE("product-key memory: count says what tables are and what a step does with them", "[product-key]") {
  const auto counted = [](std::vector<std::string> more) {
    std::vector<std::string> arguments{"count", "--config", path_of("16-layers-1024-2-memories"), "--json"};
    for (std::string& one : more) arguments.insert(arguments.end(), {"--set", std::move(one)});
    const ProcessResult printed = run_engram(arguments);
    INFO(printed.err);
    REQUIRE(printed.exit_code == 0);
    return nlohmann::json::parse(printed.out);
  };
  const nlohmann::json object = counted({"training.batch=32", "training.split=1"});
  CHECK(object.at("parameters") == 789'953'120);
  CHECK(object.at("groups").at("memory_values") == 2 * 268'435'456);
  CHECK(object.at("groups").at("memory_keys") == 2 * 1'048'576);
  CHECK(object.at("groups").at("memory_query") == 2 * 2'103'296);
  const nlohmann::json& tables = object.at("tables");
  CHECK(tables.at("memories") == 2);
  CHECK(tables.at("tables") == 2);
  CHECK(tables.at("slots") == 262'144);
  CHECK(tables.at("value_width") == 1024);
  CHECK(tables.at("value_bytes") == 2 * 268'435'456LL * 4);
  CHECK(tables.at("optimizer") == "adam");
  CHECK(tables.at("mode") == "lazy");
  CHECK(tables.at("optimizer_state_bytes") == 2 * 268'435'456LL * 8);
  // Section 7.2: 8192 tokens touch 257,343 rows of each, 98%; section 7.1: 524,288 bytes a token and memory.
  CHECK(tables.at("touched_rows_per_step").get<double>() == Approx(2 * 257'343).margin(1));
  CHECK(tables.at("touched_share").get<double>() == Approx(0.98).margin(0.005));
  CHECK(tables.at("gathered_bytes_per_token") == 2 * 524'288);
  CHECK(object.at("training_state_bytes") == (789'953'120 - 2 * 268'435'456LL) * 16 + 2 * 268'435'456LL * 12);

  const nlohmann::json other =
      counted({"product_key.shared_values=true", "product_key.value_dtype=bf16", "optimizer.table_kind=row_adagrad"});
  CHECK(other.at("parameters") == 789'953'120 - 268'435'456);
  CHECK(other.at("tables").at("tables") == 1);
  CHECK(other.at("tables").at("value_bytes") == 268'435'456 * 2);
  CHECK(other.at("tables").at("optimizer_state_bytes") == 262'144 * 4);
  CHECK(other.at("tables").at("gathered_bytes_per_token") == 524'288);
  CHECK_FALSE(other.at("tables").contains("mode"));

  const ProcessResult printed = run_engram(
      {"count", "--config", path_of("12-layers-1024-1-memory"), "--set", "training.batch=32", "training.split=1"});
  CHECK_THAT(printed.out, ContainsSubstring("memory_values       268435456\n") &&
                              ContainsSubstring("memory slots           262144  in one table of 1024 numbers") &&
                              ContainsSubstring("touched                257343  rows, 98.2%"));
  const ProcessResult host = run_engram({"count", "--config", path_of("12-layers-1024")});
  CHECK_THAT(host.out, !ContainsSubstring("memory slots"));
}

}  // namespace
}  // namespace engram::harness::product_key_count_test
