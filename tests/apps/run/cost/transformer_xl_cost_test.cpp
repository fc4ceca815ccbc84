/// Configs of the Transformer-XL family: parameters of [transformer-xl 5.2, 5.3], arithmetic of section 9.1,
/// bytes of section 9.3.

#include "apps/run/cost/transformer_xl_cost.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::transformer_xl_cost_test {
namespace {

RunConfig config_named(const std::string& name) {
  return load_run_config(std::filesystem::path(ENGRAM_SOURCE_DIR) / "apps/configs/transformer-xl" / (name + ".toml"));
}

TEST_CASE("transformer-xl: the configs have the numbers of parameters of the worked tables") {
  struct Row {
    const char* name;
    std::int64_t total, layers, biases, tables, projections, ends;
  };
  constexpr Row kRows[] = {{"enwik8-12-layers", 41'055'436, 40'949'760, 1'024, 104'448, 0, 204},
                           {"enwik8-24-layers", 277'231'820, 277'020'672, 2'048, 208'896, 0, 204},
                           {"text8-12-layers", 40'964'635, 40'949'760, 1'024, 13'824, 0, 27},
                           {"text8-24-layers", 277'050'395, 277'020'672, 2'048, 27'648, 0, 27},
                           {"wikitext-103-base", 151'107'538, 41'066'400, 820, 109'771'350, 0, 268'968},
                           {"wikitext-103-base-untied", 151'119'838, 41'066'400, 13'120, 109'771'350, 0, 268'968},
                           {"wikitext-103-large", 285'205'322, 245'532'672, 36'864, 36'923'760, 2'441'216, 270'810},
                           {"wikitext-103-16-layers", 257'919'818, 218'251'264, 32'768, 36'923'760, 2'441'216, 270'810},
                           {"lm1b-18-layers", 357'812'082, 245'532'672, 2'048, 108'695'536, 2'785'280, 796'546},
                           {"lm1b-18-layers-untied", 355'749'746, 245'532'672, 36'864, 108'695'536, 688'128, 796'546},
                           {"lm1b-20-layers", 466'962'290, 356'741'120, 40'960, 108'695'536, 688'128, 796'546},
                           {"lm1b-24-layers", 838'078'062, 700'274'688, 61'440, 135'869'420, 1'075'200, 797'314},
                           {"lm1b-24-layers-shared", 841'295'982, 700'274'688, 2'560, 135'869'420, 4'352'000, 797'314}};
  for (const Row& row : kRows) {
    INFO(row.name);
    const ParameterCount count = count_parameters(*make_model(config_named(row.name).model));
    CHECK(count.total == row.total);
    CHECK(count.of(ParameterRole::attention) + count.of(ParameterRole::feed_forward) +
              count.of(ParameterRole::layer_norm) ==
          row.layers);
    CHECK(count.of(ParameterRole::positions) == row.biases);
    CHECK(count.of(ParameterRole::embeddings) == row.tables);
    CHECK(count.of(ParameterRole::projections) == row.projections);
    CHECK(count.of(ParameterRole::output) + count.of(ParameterRole::output_biases) +
              count.of(ParameterRole::cluster_head) ==
          row.ends);
  }
  // Stand-ins of [transformer-xl 4.6, 5.3, 6.5].
  constexpr std::pair<const char*, std::int64_t> kStandIns[] = {{"enwik8-18-layers", 87'965'708},
                                                                {"ptb", 24'389'920},
                                                                {"wikitext-103-128M", 128'684'338},
                                                                {"lm1b-ablation", 299'108'210}};
  for (const auto& [name, total] : kStandIns) {
    INFO(name);
    CHECK(count_parameters(*make_model(config_named(name).model)).total == total);
  }
}

TEST_CASE("transformer-xl: classifiers of auxiliary losses cost what they cost on the mean of the training",
          "[auxiliary]") {
  TransformerXlOptions with = config_named("enwik8-t12").model.transformer_xl, without = with;
  without.intermediate_losses = false;
  without.second_target = 0;
  const XlCostSetting setting{.segment = 512, .batch = 16};
  // Layer l of 12 predicts for l / 24 of the training: 11 layers for 66 / 24 of one, and the last for its second
  // target.
  CHECK(training_flops(with, setting).products - training_flops(without, setting).products ==
        Approx((2 * 66.0 / 24 + 1) * 6 * 512 * 205).epsilon(1e-12));
  with.second_target = 0;
  CHECK(auxiliary_flops(with) == Approx(66.0 / 24 * 6 * 512 * 205).epsilon(1e-12));
  CHECK(auxiliary_flops(without) == 0);
}

XlCostSetting setting_of(const RunConfig& config) {
  return {.segment = config.training.block, .batch = config.training.batch};
}

TEST_CASE("transformer-xl: arithmetic of training is that of the worked tables") {
  struct Row {
    const char* name;
    double forward, backward, released;  // MFLOP per token
  };
  constexpr Row kRows[] = {{"enwik8-12-layers", 117.0, 220.8, 132.7}, {"enwik8-24-layers", 775.5, 1448.8, 882.4},
                           {"wikitext-103-base", 96.4, 181.9, 104.7}, {"wikitext-103-large", 592.8, 1109.6, 651.8},
                           {"lm1b-18-layers", 534.2, 992.5, 573.6},   {"lm1b-24-layers", 1487.7, 2817.9, 1569.2}};
  for (const Row& row : kRows) {
    INFO(row.name);
    const RunConfig config = config_named(row.name);
    const XlCostSetting setting = setting_of(config);
    CHECK(forward_flops(config.model.transformer_xl, setting).layers / 1e6 == Approx(row.forward).margin(0.051));
    CHECK(backward_flops(config.model.transformer_xl, setting).layers / 1e6 == Approx(row.backward).margin(0.051));
    CHECK(released_flops(config.model.transformer_xl, setting).layers / 1e6 == Approx(row.released).margin(0.051));
  }
}

TEST_CASE("transformer-xl: arithmetic of evaluation is that of the worked tables") {
  struct Row {
    const char* name;
    std::int64_t segment, memory;
    double released, cached;
  };
  constexpr Row kRows[] = {{"enwik8-12-layers", 80, 2100, 822.8, 154.4},
                           {"enwik8-24-layers", 128, 3800, 7109.7, 1073.2},
                           {"wikitext-103-base", 64, 640, 324.9, 103.1},
                           {"wikitext-103-large", 128, 1600, 2569.3, 637.1}};
  for (const Row& row : kRows) {
    INFO(row.name);
    TransformerXlOptions model = config_named(row.name).model.transformer_xl;
    model.memory = row.memory;
    const XlCostSetting setting{.segment = row.segment};
    CHECK(released_flops(model, setting).layers / 1e6 == Approx(row.released).margin(0.051));
    CHECK(cached_flops(model, setting).layers / 1e6 == Approx(row.cached).margin(0.051));
    // Every query sees a whole window, however the text is cut.
    model.visibility = Visibility::last_memory;
    CHECK(mean_keys(model, setting) == static_cast<double>(row.memory));
  }
}

TEST_CASE("transformer-xl: arithmetic of the output is that of the worked tables") {
  // MFLOP per token of the head and per token of each tail cluster (section 9.1).
  const auto ends = [](const char* name, const std::vector<double>& shares) {
    const RunConfig config = config_named(name);
    return forward_flops(config.model.transformer_xl, {.segment = 1, .cluster_shares = shares}).ends / 1e6;
  };
  const double base = ends("wikitext-103-base", {1, 0, 0, 0});
  CHECK(base == Approx(16.4).margin(0.051));
  CHECK(ends("wikitext-103-base", {0, 1, 0, 0}) - base == Approx(16.4).margin(0.051));
  CHECK(ends("wikitext-103-base", {0, 0, 1, 0}) - base == Approx(131.2).margin(0.051));
  CHECK(ends("wikitext-103-base", {0, 0, 0, 1}) - base == Approx(55.5).margin(0.051));
  // The large model projects the input too: 2 D E_i for a token of cluster i.
  const double input = 2 * 1024 * 1024 / 1e6;
  const double large = ends("wikitext-103-large", {1, 0, 0, 0}) - input;
  CHECK(large == Approx(43.1).margin(0.051));
  CHECK(ends("wikitext-103-large", {0, 1, 0, 0}) - large - input / 4 == Approx(10.8).margin(0.051));
  CHECK(ends("wikitext-103-large", {0, 0, 1, 0}) - large - input / 16 == Approx(20.6).margin(0.051));
  CHECK(ends("wikitext-103-large", {0, 0, 0, 1}) - large - input / 64 == Approx(2.2).margin(0.051));
}

TransformerXlOptions small_model() {
  TransformerXlOptions model;
  model.vocabulary = 9;
  model.layers = 2;
  model.width = 8;
  model.heads = 2;
  model.inner = 16;
  model.memory = 6;
  return model;
}

TEST_CASE("transformer-xl: a step's arithmetic by the part that spends it") {
  // S = 4, B = 3, a = 8: a query sees 8.5 keys, and each of two layers projects 10 distances for 12 tokens.
  const TransformerXlOptions model = small_model();
  const StepSetting setting{.block = 4, .batch = 3, .optimizer = OptimizerKind::adam, .parameters = 100};
  const StepCost cost = step_cost(model, setting);
  CHECK(cost.window == 8.5);
  const double positions = 2 * 10 * 64 / 12.0;
  CHECK(cost.training.products == Approx(2 * (3 * (8 * 64 + 4 * 8 * 16) + 2 * positions) + 3 * 2 * 8 * 9));
  CHECK(cost.training.attention_forward == 2 * 6 * 8.5 * 8);
  CHECK(cost.training.attention_backward == 2 * 2 * 6 * 8.5 * 8);
  CHECK(cost.training.past_forward == 2 * 4 * 6 * 64 / 4);
  CHECK(cost.training.past_backward == cost.training.past_forward);
  CHECK(cost.attention_exponentials == 2 * 2 * 8.5);
  CHECK(cost.output_exponentials == 9);
  CHECK(cost.exponentials == 2 * 34 + 9);
  // Queries and outputs, memory and segment, their keys and values written and read, statistics; keys of distances.
  const double layer = 3 * (2 * 4 * 8 + 10 * (8 + 4 * 8) + 2 * 4) + 10 * 8;
  CHECK(cost.bytes == 4 * (2 * 3 * layer + 7 * 100));
  CHECK(cost.frozen_flops == 2 * (8 * 64 + 4 * 8 * 16 + 6 * 8.5 * 8) + 2 * 8 * 9);
  CHECK(cost.forward_flops == Approx(cost.frozen_flops + cost.training.past_forward + 2 * positions));
  // One token of one stream sees the memory and itself.
  CHECK(cost.token_bytes == 4 * (2 * (4 * 64 + 2 * 8 * 16 + 3 * 7 * 8) + 8 * 9));
}

TEST_CASE("transformer-xl: the parts of a step add up to the arithmetic of training") {
  const XlCostSetting setting{.segment = 6, .extension = 2, .batch = 3};
  const auto check = [&](const TransformerXlOptions& model) {
    CHECK(training_flops(model, setting).total() ==
          Approx(forward_flops(model, setting).total() + backward_flops(model, setting).total()));
  };
  TransformerXlOptions model = small_model();
  check(model);
  // A memory that is normalised first is projected by plain products, as the gradient of its norm is.
  model.pre_norm = true;
  check(model);
  CHECK(training_flops(model, setting).past_forward == 0);
  model = small_model();
  model.positions = PositionKind::shaw;
  check(model);
  model.positions = PositionKind::absolute_sinusoidal;
  check(model);
  model = small_model();
  model.vocabulary = 40;
  model.cutoffs = {10, 20};
  model.divisor = 2;
  check(model);
  model.visibility = Visibility::last_memory;
  check(model);
}

TEST_CASE("transformer-xl: bytes of a generated token are those of the worked tables") {
  // Section 9.3, millions of numbers: layer weights, keys and values of W visible ones, keys of at most W distances.
  struct Row {
    const char* name;
    std::int64_t visible;
    double weights, cache, distances;
  };
  constexpr Row kRows[] = {{"wikitext-103-large", 1600, 226.5, 59.0, 29.5},
                           {"enwik8-24-layers", 3800, 251.7, 186.8, 93.4},
                           {"enwik8-12-layers", 2100, 37.7, 25.8, 12.9}};
  for (const Row& row : kRows) {
    INFO(row.name);
    TransformerXlOptions model = config_named(row.name).model.transformer_xl;
    model.memory = row.visible;
    model.visibility = Visibility::last_memory;
    model.clamp = 0;
    // A vocabulary of one symbol in the place of the output.
    model.cutoffs.clear();
    model.divisor = 1;
    model.embedding_width = 0;
    model.untied_projections.clear();
    model.vocabulary = 1;
    CHECK(generation_bytes(model) / 4e6 == Approx(row.weights + row.cache + row.distances).margin(0.16));
    const double all = generation_bytes(model);
    model.clamp = 999;
    const auto numbers = static_cast<double>(model.layers * model.heads * model.head_depth());
    CHECK(all - generation_bytes(model) == 4 * numbers * static_cast<double>(row.visible - 1000));
  }
}

TEST_CASE(
    "transformer-xl: exponentials of an output in clusters are those of the head and of the shares of the tails") {
  TransformerXlOptions model = small_model();
  model.vocabulary = 40;
  model.cutoffs = {10, 25};
  CHECK(output_exponentials(model, {.cluster_shares = {0.5, 0.25, 0.25}}) == 10 + 2 + 0.25 * 15 + 0.25 * 15);
}

}  // namespace
}  // namespace engram::harness::transformer_xl_cost_test
