/// Parameter counts and FLOP formulas against the published figures: [all-attention 3, 6, 10]; its test T12.

#include <array>
#include <filesystem>
#include <set>
#include <string>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "core/error.hpp"
#include "nn/models/all_attention.hpp"
#include "nn/visitor.hpp"
#include "tests/harness/catch.hpp"

namespace engram::count_test {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(ENGRAM_SOURCE_DIR) / "apps/configs";

RunConfig config_named(const std::string& name) {
  return load_run_config(kConfigs / "all-attention" / (name + ".toml"));
}

ParameterCount count_of(const AllAttentionOptions& options) {
  AllAttentionModel model(options);
  return count_parameters(model);
}

struct Published {
  const char* config;
  std::int64_t parameters;
};
constexpr Published kPublished[] = {
    {"enwik8-all-attention-small", 38'501'725},    {"text8-all-attention-small", 38'320'300},
    {"enwik8-all-attention-large", 114'017'773},   {"text8-all-attention-large", 113'836'348},
    {"enwik8-transformer-12-layers", 38'538'541},  {"text8-transformer-12-layers", 38'357'116},
    {"enwik8-transformer-24-layers", 208'910'221}, {"text8-transformer-24-layers", 208'638'172},
    {"text8-transformer-22-layers", 116'042'956},  {"enwik8-8-layers", 6'480'621}};

}  // namespace

TEST_CASE("the papers' configs have the published numbers of parameters") {
  for (const auto& [name, parameters] : kPublished) {
    INFO(name);
    CHECK(count_of(config_named(name).model.all_attention).total == parameters);
  }
}

TEST_CASE("the configs for words have the numbers of parameters of the worked tables") {
  constexpr Published kWords[] = {{"wikitext-103-all-attention", 132'493'746},
                                  {"wikitext-103-all-attention-3-clusters", 136'034'777},
                                  {"wikitext-103-transformer-22-layers", 134'700'354},
                                  {"wikitext-103-transformer-36-layers", 132'622'770}};
  for (const auto& [name, parameters] : kWords) {
    INFO(name);
    const RunConfig config = config_named(name);
    CHECK(count_of(config.model.all_attention).total == parameters);
    CHECK(config.model.all_attention.table_init == TableInit::unit);
    CHECK(config.optimizer.kind == OptimizerKind::adam);
    CHECK(config.optimizer.clip == 1);
    CHECK(config.optimizer.clip_kind == ClipKind::global);
    CHECK(config.schedule.rate == 2.5e-4);
    CHECK(config.schedule.warmup == 8000);
    CHECK(config.schedule.steps == 800'000);
    CHECK(config.training.finetune_steps == 50'000);
    CHECK(config.training.block == 256);
    CHECK(config.training.batch == 64);
    CHECK(config.training.split == 2);
    CHECK(config.training.span_loss == 5e-7);
    CHECK(config.model.all_attention.max_span == 2048);
    CHECK(config.model.all_attention.dropout == 0.3);
    CHECK(config.model.all_attention.embedding_dropout == 0.1);
  }
}

TEST_CASE("the configs of figure 2 have the numbers of parameters of the worked tables") {
  constexpr Published kFigure2[] = {{"text8-slots-0", 38'338'876},       {"text8-slots-256", 47'776'060},
                                    {"text8-slots-512", 57'213'244},     {"text8-slots-1024", 76'087'612},
                                    {"text8-slots-4096", 189'333'820},   {"text8-attn-split", 113'836'348},
                                    {"text8-head-split", 76'087'612},    {"text8-single-head", 113'836'348},
                                    {"text8-ff-attn-3072", 101'265'628}, {"text8-ff-attn-3584", 113'848'540}};
  const RunConfig large = config_named("text8-all-attention-large");
  for (const auto& [name, parameters] : kFigure2) {
    INFO(name);
    RunConfig config = config_named(std::string("figure-2/") + name);
    CHECK(count_of(config.model.all_attention).total == parameters);
    // Nothing else differs from the large text8 model.
    config.model.all_attention.memory_mode = large.model.all_attention.memory_mode;
    config.model.all_attention.slots = large.model.all_attention.slots;
    config.model.all_attention.inner = large.model.all_attention.inner;
    config.model.all_attention.layers = large.model.all_attention.layers;
    CHECK(to_toml(config) == to_toml(large));
  }
}

TEST_CASE("value-side positions and dynamic spans are counted") {
  AllAttentionOptions options = config_named("text8-all-attention-small").model.all_attention;
  const std::int64_t total = count_of(options).total;
  options.position_values = PositionValues::shared;
  CHECK(count_of(options).total == total);
  options.position_values = PositionValues::own;
  CHECK(count_of(options).total == total + 64 * 8192);
  options.span = SpanKind::dynamic;
  // v [H, d] and b [H] of every layer instead of zeta [H].
  CHECK(count_of(options).total == total + 64 * 8192 + 18 * 8 * 512);
  CHECK(count_of(options).of(ParameterRole::spans) == 18 * 8 * 513);
}

TEST_CASE("persistent slots of the large text8 model, from none to 4096") {
  const RunConfig config = config_named("text8-all-attention-large");
  constexpr std::array<std::array<std::int64_t, 2>, 6> kSweep{{{0, 38'338'876},
                                                               {256, 47'776'060},
                                                               {512, 57'213'244},
                                                               {1024, 76'087'612},
                                                               {2048, 113'836'348},
                                                               {4096, 189'333'820}}};
  for (const auto& [slots, parameters] : kSweep) {
    INFO("N = " << slots);
    AllAttentionOptions options = config.model.all_attention;
    options.slots = slots;
    if (slots == 0) options.memory_mode = MemoryMode::none;
    const ParameterCount count = count_of(options);
    CHECK(count.total == parameters);
    CHECK(count.of(ParameterRole::persistent) == 36 * 2 * 512 * slots);
    CHECK(count.of(ParameterRole::attention) == 37'748'736);
  }
}

TEST_CASE("parameters by role add up and follow the formulas") {
  AllAttentionOptions options = config_named("enwik8-8-layers").model.all_attention;
  const ParameterCount count = count_of(options);
  CHECK(count.of(ParameterRole::embeddings) == 205 * 256);
  CHECK(count.of(ParameterRole::positions) == 64 * 1024);
  CHECK(count.of(ParameterRole::attention) == 8 * 4 * 256 * 256);
  CHECK(count.of(ParameterRole::persistent) == 0);
  CHECK(count.of(ParameterRole::feed_forward) == 8 * (2 * 256 * 1024 + 1024 + 256));
  CHECK(count.of(ParameterRole::layer_norm) == 8 * 4 * 256);
  CHECK(count.of(ParameterRole::spans) == 8 * 4);
  CHECK(count.of(ParameterRole::output) == 205 * 256 + 205);
  std::int64_t sum = 0;
  for (const std::int64_t role : count.by_role) sum += role;
  CHECK(sum == count.total);

  options.span = SpanKind::fixed;
  CHECK(count_of(options).of(ParameterRole::spans) == 0);
  CHECK(count_of(options).total == count.total - 8 * 4);
}

TEST_CASE("a parameter of an unknown role is refused, not lost") {
  struct Stray final : Module {
    Parameter parameter{{3}, {}};
    void visit(Visitor& visit) override { visit("stray", parameter); }
  } stray;
  CHECK_THROWS_AS(count_parameters(stray), Error);
}

TEST_CASE("buffers do not count, tables do") {
  struct Both final : Module {
    Parameter table{{5, 3}, {}, Gradient::rows}, buffer{{7}, {}, Gradient::none};
    void visit(Visitor& visit) override {
      visit("embedding.table", table);
      visit("running_mean", buffer);  // of no role
    }
  } both;
  const ParameterCount count = count_parameters(both);
  CHECK(count.total == 15);
  CHECK(count.tensors == 1);
}

TEST_CASE("every config loads, counts and defines another run") {
  std::set<std::string> contents;
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kConfigs)) {
    INFO(entry.path());
    if (entry.is_directory()) continue;
    if (entry.path().extension() == ".sh" || entry.path().extension() == ".study") continue;
    REQUIRE(entry.path().extension() == ".toml");
    ++files;
    RunConfig config = load_run_config(entry.path());
    CHECK(contents.insert(to_toml(config)).second);
    if (config.model.vocabulary() == 0) config.model.set_vocabulary(10000);
    CHECK(count_parameters(*make_model(config.model)).total > 0);
    CHECK(config.training.batch % config.training.split == 0);
  }
  CHECK(files >= 50);
}

TEST_CASE("the papers' configs hold the settings of their runs") {
  for (const auto& [name, parameters] : kPublished) {
    INFO(name);
    const RunConfig config = config_named(name);
    CHECK(config.optimizer.kind == OptimizerKind::adagrad);
    CHECK(config.optimizer.clip == 0.03);
    CHECK(config.optimizer.clip_kind == ClipKind::per_tensor_step);
    CHECK(config.schedule.rate == 0.07);
    CHECK(config.schedule.finetune_share == 0.1);
    CHECK(config.training.batch == 64);
    CHECK(config.model.all_attention.ramp == 32);
    CHECK(config.model.all_attention.span_init == 0);
    const bool single = std::string(name) == "enwik8-8-layers";
    CHECK(config.model.all_attention.max_span == (single ? 1024 : 8192));
    CHECK(config.training.block == (single ? 256 : 512));
    CHECK(config.schedule.warmup == (single ? 8000 : 32000));
  }
  const RunConfig small = config_named("enwik8-all-attention-small");
  CHECK(small.total_steps() == 480'000);
  CHECK(small.training.span_loss == 1e-7);
  CHECK(small.model.all_attention.dropout == 0.3);
  CHECK(small.training.split == 2);
  CHECK(config_named("enwik8-all-attention-large").total_steps() == 210'000);
  CHECK(config_named("text8-transformer-12-layers").total_steps() == 900'000);
  CHECK(config_named("text8-transformer-24-layers").training.span_loss == 5e-7);
}

TEST_CASE("FLOPs per token are those of the worked table") {
  struct Row {
    const char* config;
    double window, evaluation, training;  // MFLOP per token, as printed
  };
  // With the windows 32, 256, 1024 and S.
  const Row rows[] = {
      {"enwik8-all-attention-small", 32, 77.5, 235},    {"enwik8-all-attention-small", 256, 89.9, 289},
      {"enwik8-all-attention-small", 1024, 132, 473},   {"enwik8-all-attention-small", 8192, 529, 2190},
      {"enwik8-all-attention-large", 32, 230, 695},     {"enwik8-all-attention-large", 8192, 1133, 4606},
      {"enwik8-transformer-12-layers", 256, 85.1, 268}, {"enwik8-transformer-12-layers", 1024, 114, 391},
      {"enwik8-transformer-24-layers", 32, 419, 1264},  {"enwik8-transformer-24-layers", 8192, 1322, 5777}};
  for (const Row& row : rows) {
    INFO(row.config << " at " << row.window);
    const RunConfig config = config_named(row.config);
    const CostSetting setting{row.window, config.training.block, config.training.batch};
    // The table has three to four digits.
    CHECK(evaluation_flops(config.model.all_attention, row.window) / 1e6 == Approx(row.evaluation).epsilon(0.005));
    CHECK(training_flops(config.model.all_attention, setting).total() / 1e6 == Approx(row.training).epsilon(0.005));
  }
}

TEST_CASE("costs of a step by hand") {
  AllAttentionOptions model;
  model.vocabulary = 5;
  model.layers = 1;
  model.width = 4;
  model.heads = 2;
  model.slots = 3;
  model.max_span = 6;
  const TrainingFlops flops = training_flops(model, {6, 2, 1});
  CHECK(flops.products == 3 * 8 * 16 + 6 * 4 * 5);
  CHECK(flops.attention_forward == 6 * 4 * 6 + 4 * 4 * 3);
  CHECK(flops.attention_backward == 2 * flops.attention_forward);
  CHECK(flops.past_forward == 4 * 16 * 6 / 2);
  CHECK(flops.past_backward == flops.past_forward);
  CHECK(flops.total() - flops.attention() == flops.products);
  CHECK(training_exponentials(model, 6) == 2 * 2 * (6 + 3));
  // The same layer, its slots elsewhere. Head split: one of two heads has keys, values and a window, the other slots.
  const auto forward_of = [&](MemoryMode mode, std::int64_t slots, std::int64_t inner) {
    AllAttentionOptions other = model;
    other.memory_mode = mode;
    other.slots = slots;
    other.inner = inner;
    return training_flops(other, {6, 2, 1});
  };
  const TrainingFlops split = forward_of(MemoryMode::head_split, 3, 0);
  CHECK(split.products == 3 * (4 * 16 + 2 * 16) + 6 * 4 * 5);
  CHECK(split.attention_forward == 6 * 2 * 6 + 4 * 2 * 3);
  CHECK(split.past_forward == 4 * 16 * 6 / 2 / 2);
  for (const MemoryMode mode : {MemoryMode::attn_split, MemoryMode::single_head})
    CHECK(forward_of(mode, 3, 0).total() == flops.total());
  const TrainingFlops second = forward_of(MemoryMode::ff_attn, 0, 7);
  CHECK(second.products == flops.products);
  CHECK(second.attention_forward == 6 * 4 * 6 + 4 * 4 * 7);
  CHECK(forward_of(MemoryMode::transformer, 0, 7).products == 3 * (8 * 16 + 4 * 4 * 7) + 6 * 4 * 5);
  model.position_values = PositionValues::shared;
  CHECK(training_flops(model, {6, 2, 1}).attention_forward == 8 * 4 * 6 + 4 * 4 * 3);
  model.position_values = PositionValues::none;
  const auto exponentials_of = [&](MemoryMode mode, std::int64_t slots, std::int64_t inner) {
    AllAttentionOptions other = model;
    other.memory_mode = mode;
    other.slots = slots;
    other.inner = inner;
    return training_exponentials(other, 6);
  };
  CHECK(exponentials_of(MemoryMode::single_head, 3, 0) == 2 * (2 * 6 + 3));
  CHECK(exponentials_of(MemoryMode::head_split, 3, 0) == 2 * (6 + 3));
  CHECK(exponentials_of(MemoryMode::ff_attn, 0, 7) == 2 * (2 * 6 + 7));
  CHECK(values_per_parameter(OptimizerKind::adagrad) == 3);
  CHECK(values_per_parameter(OptimizerKind::adam) == 4);
  // Queries and outputs, caches, keys and values, slots, positions, log-sum-exps; then five numbers per parameter.
  const double layer = 2 * 2 * 4 + 8 * 4 + 4 * 8 * 4 + 2 * 3 * 4 + 6 * 2 + 2 * 2;
  CHECK(training_bytes(model, {6, 2, 1}, OptimizerKind::adagrad, 100) == 4 * (3 * layer + 5 * 100));
}

}  // namespace engram::count_test
